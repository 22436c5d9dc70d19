// Draw: a seeded source of cases for one dtype, in the words a property needs for its hypotheses.
#pragma once

#include <rapidcheck/Random.h>

#include <cstdint>

#include "core/problem/case.h"
#include "properties/generators/production.h"
#include "properties/generators/recipe.h"

namespace attest {

/// A case being drawn: narrowed by what a property needs, then taken as a Case. Thread-compatible, cheap to copy.
class DrawnAttention {
 public:
  /// Half of the cases get scores and values near the edges of the domain of definition.
  DrawnAttention& near_the_edge();
  /// One case in 16 as models and their test-suites have them: Gaussian scores and values, scale 1/sqrt(dk), 8 to 511
  /// keys, 32 to 128 columns, few queries and heads, causal, masked or not. Short cases find more; these tell how large
  /// errors usually are.
  DrawnAttention& sometimes_of_model_size();
  /// A dozen of the first 100 cases have up to 8192 keys, of scores that differ: they are written out in long_cases.cc.
  /// What a kernel does from some length on shows in no other.
  DrawnAttention& long_among_the_first();
  /// No mask, no causal form: Attention(Q, K, V) of the documents.
  DrawnAttention& unmasked();
  /// One case in four has an argument of a later version of the contract, drawn by its row (fields.h). Only for what
  /// asks the definition itself, and for laws that hold whatever these are (Property::under).
  DrawnAttention& with_later_arguments();
  /// A window, its ends around and within the lengths that the case has by now.
  DrawnAttention& windowed();
  /// Chunks of keys, around and within the lengths that the case has by now.
  DrawnAttention& chunked();
  /// Factors of q, k or v.
  DrawnAttention& with_descale(FactorKind kind = FactorKind::any);
  /// A sink for each head.
  DrawnAttention& with_sinks();
  /// A cap of scores.
  DrawnAttention& with_softcap();
  /// Weights that are dropped.
  DrawnAttention& with_dropout();
  /// Slopes, of positions that count from the first key or from the last one where there is no causal form.
  DrawnAttention& with_slopes();
  /// Gradients by the output, for a backward pass.
  DrawnAttention& with_gradients();
  /// And for certain by the log-sum-exp, too, which one in four of the others have.
  DrawnAttention& with_gradients_by_lse();
  /// Weights that the kernel drops by a mask of its own. Only for what reads that mask: nobody else knows it.
  DrawnAttention& with_own_dropout();
  /// Sequences of lengths of their own, three times in four at least two of them.
  DrawnAttention& of_sequences();
  /// Masked but for the causal forms, which a rearrangement of rows or keys would change the meaning of. One in four
  /// has no mask, which masks nothing.
  DrawnAttention& masked();
  /// At least so many queries and keys.
  DrawnAttention& at_least(std::int32_t queries, std::int32_t keys);
  /// A memory layout for every tensor, not row-major for one of q, k and v at least, and more than one head and batch
  /// entry half of the time each.
  DrawnAttention& strided();
  /// Whatever else a hypothesis needs of the recipe.
  template <class Edit>
  DrawnAttention& where(Edit&& edit) {
    edit(recipe_);
    return *this;
  }
  // Implicit on purpose: a property's `given` returns the drawn thing, and a Case comes out.
  operator Case() const { return decode(recipe_); }

 private:
  friend class Draw;
  DrawnAttention(Recipe recipe, rc::Random random, std::int64_t k) : recipe_(recipe), random_(random), k_(k) {}
  Recipe recipe_;
  rc::Random random_;
  std::int64_t k_;
};

class DrawnMultihead {
 public:
  /// Half of the cases get tokens up to where projections and scores leave the domain of definition.
  DrawnMultihead& near_the_edge();
  /// A memory layout for every tensor, weights and biases too, not row-major for one of q, k, v and w_q at least, and
  /// more than one batch entry half of the time.
  DrawnMultihead& strided();
  /// dk = dv = d/h, c_q = d_o = d, biases together or not at all, an output projection, scale 1/sqrt(dk).
  DrawnMultihead& torch_case();
  /// No mask, no causal form.
  DrawnMultihead& unmasked();
  /// One case in four has an argument of a later version of the contract, drawn by its row (fields.h). Only for what
  /// asks the definition itself, and for laws that hold whatever these are (Property::under).
  DrawnMultihead& with_later_arguments();
  /// Masked but for the causal forms.
  DrawnMultihead& masked();
  DrawnMultihead& at_least(std::int32_t queries, std::int32_t keys);
  /// q, k and v are the same tensor.
  DrawnMultihead& self_attention();
  /// Of what is no self-attention one case in four has keys and values of one tensor, and one in eight queries and
  /// keys. What is one tensor lies in one memory in half of the cases, as it does in most programs: kernels then take
  /// other ways.
  DrawnMultihead& sometimes_aliased();
  template <class Edit>
  DrawnMultihead& where(Edit&& edit) {
    edit(recipe_);
    return *this;
  }
  operator Case() const { return decode(recipe_); }

 private:
  friend class Draw;
  explicit DrawnMultihead(Recipe recipe) : recipe_(recipe) {}
  Recipe recipe_;
};

/// Everything drawn from one Draw is a function of (dtype, seed, k) and the order of the calls.
class Draw {
 public:
  /// `k`: which case of its property it is; -1 where it is none of a sequence. The shapes outlive what is drawn.
  Draw(DType dtype, std::uint64_t seed, std::int64_t k, const Shapes& shapes)
      : dtype_(dtype), random_(seed), k_(k), shapes_(shapes) {}
  /// Small cases only.
  Draw(DType dtype, std::uint64_t seed, std::int64_t k = -1) : Draw(dtype, seed, k, small_shapes) {}
  [[nodiscard]] DType dtype() const { return dtype_; }
  /// softmax(QKᵀ·scale + mask) V of any shape and kind; one case of each `period` in a row has a production shape, in a
  /// run that draws these.
  [[nodiscard]] DrawnAttention attention(std::int64_t period = period_of_laws);
  /// Multi-head attention with projections, general c_q, c_k, c_v, dk, dv, d_o.
  [[nodiscard]] DrawnMultihead multihead(std::int64_t period = period_of_laws);

 private:
  DType dtype_;
  rc::Random random_;
  std::int64_t k_;
  const Shapes& shapes_;
};

}  // namespace attest
