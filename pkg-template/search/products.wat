;; Scalar products of a query and rows of int8 codes. The query is at 0, as int16 codes. The rows are between $row and
;; $end, $bytes each, a multiple of 16. Their products are written from 32768 on.
(module
  (memory (export "memory") 1)
  (func (export "products") (param $row i32) (param $end i32) (param $bytes i32)
    (local $at i32) (local $query i32) (local $to i32) (local $codes v128) (local $sum v128)
    (local.set $to (i32.const 32768))
    (loop $rows
      (local.set $at (local.get $row))
      (local.set $row (i32.add (local.get $row) (local.get $bytes)))
      (local.set $query (i32.const 0))
      (local.set $sum (v128.const i32x4 0 0 0 0))
      (loop $codes16
        (local.set $codes (v128.load (local.get $at)))
        (local.set $sum (i32x4.add (local.get $sum) (i32x4.add
          (i32x4.dot_i16x8_s (i16x8.extend_low_i8x16_s (local.get $codes)) (v128.load (local.get $query)))
          (i32x4.dot_i16x8_s (i16x8.extend_high_i8x16_s (local.get $codes)) (v128.load offset=16 (local.get $query))))))
        (local.set $query (i32.add (local.get $query) (i32.const 32)))
        (br_if $codes16 (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $row))))
      (i32.store (local.get $to) (i32.add
        (i32.add (i32x4.extract_lane 0 (local.get $sum)) (i32x4.extract_lane 1 (local.get $sum)))
        (i32.add (i32x4.extract_lane 2 (local.get $sum)) (i32x4.extract_lane 3 (local.get $sum)))))
      (local.set $to (i32.add (local.get $to) (i32.const 4)))
      (br_if $rows (i32.lt_u (local.get $row) (local.get $end))))))
