//! The cases: every kernel against its reference, in every variant that the adapter can run.
//!
//! A kernel's cases are in the file with its name or its family's name. `descriptors.rs` lists the
//! families. Inputs are hard on purpose: outliers, rows of zeros, sizes one past a workgroup. The
//! references sum in f64, so each tolerance covers the kernel's error alone. A comment says where
//! it comes from.
//!
//! `main.rs` makes a native test of each case. `page/` compiles them for browsers, which cannot block: so
//! they are async.

pub(crate) mod device;

#[cfg(not(target_arch = "wasm32"))]
use crate::support::{chi_square, random};

// The crate for browsers has nothing else of tests/support.
#[cfg(target_arch = "wasm32")]
#[allow(unreachable_pub, reason = "other test programs have it in a module of their own")]
#[path = "../../support/chi_square.rs"]
mod chi_square;
#[cfg(target_arch = "wasm32")]
#[allow(unreachable_pub, reason = "other test programs have it in a module of their own")]
#[path = "../../support/random.rs"]
mod random;

pub(crate) mod adapters;
pub(crate) mod attention;
pub(crate) mod best_of_each;
pub(crate) mod embed;
pub(crate) mod fused_products;
pub(crate) mod gate_rows;
pub(crate) mod gemm_lm_head;
pub(crate) mod gemv_lm_head;
pub(crate) mod greedy_lm_head;
pub(crate) mod logprobs;
pub(crate) mod packed_products;
pub(crate) mod penalize;
pub(crate) mod probe_read;
pub(crate) mod rescore_kept;
pub(crate) mod rms_norm;
pub(crate) mod rope_kv;
pub(crate) mod sampler;
pub(crate) mod take_logits;
pub(crate) mod ternary_products;

/// Gives the names of all cases to a macro, by file.
macro_rules! with_cases {
    ($then:ident) => {
        $then! {
            adapters:
                adapter_thin_norms_and_multiplies_hard_rows,
                adapter_thin_merged_merges_splits,
                adapter_add_stores_adds_and_gates,
                products_with_adapters_give_the_bits_of_two_kernels,
                products_of_attention_with_adapters_give_the_bits_of_two_kernels;
            attention:
                attention_sees_the_past_in_all_splits,
                attention_of_wide_queries_sees_the_past,
                norm_attention_decode_equals_its_two_steps,
                attention_reaches_far_into_a_long_context,
                attention_handles_extreme_scores,
                merges_take_the_mean,
                attention_merge_norms_and_quantizes,
                texts_in_rows_are_attended_as_alone;
            best_of_each:
                best_of_each_takes_the_lowest_id_among_equals,
                best_of_each_takes_biases_penalties_and_masks_into_account;
            embed:
                embed_copies_the_rows_of_all_shards;
            fused_products:
                norm_gemv_handles_hard_rows,
                norm_gemv_takes_long_rows,
                products_that_norm_their_input_give_the_same_bits,
                norm_gemv_rope_kv_rotates_and_stores,
                merge_norm_gemv_merges_splits;
            gate_rows:
                gate_rows_gates_each_token_of_the_step;
            gemm_lm_head:
                gemm_lm_head_equals_gemv_lm_head_to_the_bit;
            gemv_lm_head:
                gemv_lm_head_computes_every_shard;
            greedy_lm_head:
                every_f16_survives_splitting,
                gemv_lm_head_split_equals_gemv_lm_head_to_the_bit,
                approximate_logits_are_within_their_error,
                the_greedy_token_equals_the_f16_lm_heads,
                a_drawn_token_equals_the_f16_lm_heads,
                an_adjusted_token_equals_the_f16_lm_heads,
                a_masked_token_equals_the_f16_lm_heads,
                the_lowest_of_equal_rows_wins,
                a_hidden_state_of_nan_gives_no_token,
                most_rows_are_ruled_out;
            logprobs:
                the_records_are_those_of_the_plain_sampler,
                a_chunk_has_the_record_of_its_last_position,
                no_number_has_no_record;
            packed_products:
                gemv_packed_multiplies_every_format,
                gemv_packed_of_several_tokens_multiplies_every_format,
                gemv_packed_floats_multiplies_every_format,
                a_token_gives_the_same_bits_among_others,
                embed_packed_looks_rows_up,
                embed_stream_gives_what_embed_packed_and_stream_of_last_give,
                quantize_groups_rounds_each_group_by_its_own_scale,
                rms_norm_quantize_groups_norms_first,
                products_of_the_stream_equal_products_of_its_norm,
                norm_gemv_heads_packed_equals_its_two_steps,
                merge_stream_packed_equals_its_two_steps,
                gemm_packed_multiplies_tiles,
                one_bit_gives_what_two_bits_give;
            penalize:
                penalize_counts_every_token_once;
            probe_read:
                the_probe_reads_everything_once;
            rescore_kept:
                the_drawn_token_equals_the_whole_lm_heads,
                rows_that_are_not_kept_are_ruled_out,
                top_p_alone_rules_rows_out_where_few_tokens_have_the_weight,
                the_weight_of_ruled_out_rows_counts,
                ties_at_the_end_are_kept_by_their_ids,
                a_hidden_state_of_nan_gives_no_token;
            rms_norm:
                rms_norm_norms_the_last_token,
                rms_norm_of_all_norms_every_token,
                rms_norm_quantize_handles_every_token,
                quantize_rows_quantizes_without_a_norm,
                halves_are_rounded_to_even;
            rope_kv:
                heads_are_rotated_and_stored,
                texts_in_rows_are_stored_in_their_ranges;
            sampler:
                the_same_tokens_can_be_drawn,
                the_chosen_token_is_the_references,
                draws_follow_the_probabilities,
                the_largest_noise_is_exact,
                greedy_takes_the_lowest_id_among_equals,
                logits_of_nan_give_no_token;
            take_logits:
                take_logits_copies_the_row_of_the_step;
            ternary_products:
                gemv_i2s_is_exact,
                products_of_several_tokens_are_exact,
                products_without_packed_dot_are_exact,
                gemm_i2s_is_exact,
                gemm_i2s_matrix_is_exact;
        }
    };
}
pub(crate) use with_cases;
