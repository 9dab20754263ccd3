(module
  (memory (export "memory") 32)
  (func (export "run") (param $bytes i32) (result i32)
    (local $at i32) (local $mask v128) (local $x v128) (local $codes v128) (local $low v128) (local $high v128)
    (local.set $mask (v128.const i16x8 3 3 3 3 3 3 3 3))
    (local.set $x (v128.const i16x8 1 -2 3 -4 5 -6 7 -8))
    (loop $next
      (local.set $codes (v128.load (local.get $at)))
      (local.set $low (i32x4.add (local.get $low) (i32x4.dot_i16x8_s
        (v128.and (local.get $codes) (local.get $mask)) (local.get $x))))
      (local.set $high (i32x4.add (local.get $high) (i32x4.dot_i16x8_s
        (v128.and (i16x8.shr_u (local.get $codes) (i32.const 8)) (local.get $mask)) (local.get $x))))
      (local.set $low (i32x4.add (local.get $low) (i32x4.dot_i16x8_s
        (v128.and (i16x8.shr_u (local.get $codes) (i32.const 2)) (local.get $mask)) (local.get $x))))
      (local.set $high (i32x4.add (local.get $high) (i32x4.dot_i16x8_s
        (v128.and (i16x8.shr_u (local.get $codes) (i32.const 10)) (local.get $mask)) (local.get $x))))
      (local.set $low (i32x4.add (local.get $low) (i32x4.dot_i16x8_s
        (v128.and (i16x8.shr_u (local.get $codes) (i32.const 4)) (local.get $mask)) (local.get $x))))
      (local.set $high (i32x4.add (local.get $high) (i32x4.dot_i16x8_s
        (v128.and (i16x8.shr_u (local.get $codes) (i32.const 12)) (local.get $mask)) (local.get $x))))
      (local.set $low (i32x4.add (local.get $low) (i32x4.dot_i16x8_s
        (i16x8.shr_u (local.get $codes) (i32.const 14)) (local.get $x))))
      (local.set $high (i32x4.add (local.get $high) (i32x4.dot_i16x8_s
        (v128.and (i16x8.shr_u (local.get $codes) (i32.const 6)) (local.get $mask)) (local.get $x))))
      (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $bytes))))
    (i32x4.extract_lane 0 (i32x4.add (local.get $low) (local.get $high)))))
