// The specification: each function of the core equals the formula of its definition, written out in written_out.h, at
// small shapes, as checks that any proving scalar can run. N >= 2 and dk >= 2 throughout: below, false statements
// become true.
#pragma once

#include <array>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "core/definition/columns.h"
#include "core/definition/matrices.h"
#include "core/definition/multihead.h"
#include "core/definition/position.h"
#include "core/definition/projection.h"
#include "core/definition/softmax.h"
#include "core/test/definition/other_forms.h"
#include "core/test/definition/written_out.h"
#include "core/test/proof/scopes.h"

namespace attest::test {

/// What a check has compared.
struct Comparison {
  int entries = 0;
  std::vector<std::string> different;  ///< where core and formula differ

  template <class T>
  void entry(const T& core, const T& formula, const std::string& where) {
    ++entries;
    if (!identical(core, formula)) different.push_back(where);
  }
  template <class T>
  void same(const Matrix<T>& core, const written::Table<T>& formula, const std::string& what) {
    if (core.rows() != static_cast<Index>(formula.size())) different.push_back(what + ": number of rows");
    for (Index i = 0; i < core.rows() && different.empty(); ++i) {
      const std::vector<T>& row = formula[static_cast<std::size_t>(i)];
      if (core.cols() != static_cast<Index>(row.size())) return different.push_back(what + ": number of columns");
      for (Index j = 0; j < core.cols(); ++j)
        entry(core(i, j), row[static_cast<std::size_t>(j)],
              what + "(" + std::to_string(i) + "," + std::to_string(j) + ")");
    }
  }
  template <class T>
  void same(const Vector<T>& core, const std::vector<T>& formula, const std::string& what) {
    same(Matrix<T>(core.transpose()), written::Table<T>{formula}, what);
  }
};

/// One statement "core = formula", for all inputs at this shape.
template <class Scope>
struct SpecificationCheck {
  std::string name;
  std::function<void(Scope&, Comparison&)> run;
  friend std::ostream& operator<<(std::ostream& out, const SpecificationCheck& check) { return out << check.name; }
};

/// The checks on the scalar of one scope class. Scope::Number is the scalar; real and positive make indeterminates.
template <class Scope>
class Specification {
 public:
  using T = typename Scope::Number;
  using M = Matrix<T>;
  using V = Vector<T>;
  using Table = written::Table<T>;
  using At = std::size_t;

  [[nodiscard]] static std::vector<SpecificationCheck<Scope>> checks() {
    std::vector<SpecificationCheck<Scope>> all = {
        {"softmax", softmax_of_a_row},
        {"softmax.hidden-entries", softmax_with_hidden_entries},
        {"softmax.rows-and-columns", softmax_of_matrices},
        {"product", matrix_product},
        {"attention", attention_itself},
        {"attention.weights-and-scores", scores_and_weights},
        {"mask.additive-post-scale", [](Scope& s, Comparison& c) { additive(s, c, MaskConvention::post_scale); }},
        {"mask.additive-pre-scale", [](Scope& s, Comparison& c) { additive(s, c, MaskConvention::pre_scale); }},
        {"mask.softcap", capped},
        {"mask.slope", sloped},
        {"mask.dropout", dropped},
        {"mask.boolean", boolean},
        {"mask.boolean-as-additive", boolean_as_additive},
        {"mask.causal-top-left", [](Scope& s, Comparison& c) { causal(s, c, Causal::top_left); }},
        {"mask.window", window},
        {"mask.chunk", chunk},
        {"mask.causal-bottom-right", [](Scope& s, Comparison& c) { causal(s, c, Causal::bottom_right); }},
        {"mask.all-parts-together", all_parts},
        {"mask.renormalised", renormalised},
        {"grouped-queries", grouped},
        {"partial.state", partial_state},
        {"partial.split-and-merge", split_and_merge},
        {"projection", projection_alone},
        {"attn_w", weighted},
        {"mattn_w", masked_weighted},
        {"sattn", self},
        {"msattn", masked_self},
        {"bilinear-scores", bilinear},
        {"packed-qkv.blocks", [](Scope& s, Comparison& c) { packed(s, c, Packing::blocks); }},
        {"packed-qkv.interleaved", [](Scope& s, Comparison& c) { packed(s, c, Packing::interleaved); }},
        {"mhattn", multihead},
        {"mmhattn", masked_multihead},
        {"mhsattn", multihead_self},
        {"mmhsattn", masked_multihead_self},
        {"mmhattn.as-sum", multihead_as_sum},
        {"mmhattn.without-w_o", multihead_without_output_projection},
        {"mmhattn.fused-heads", fused_heads},
        {"mmhattn.bias-kv", bias_kv},
        {"mmhattn.batch", batch_of_masks},
        {"torch.packed", [](Scope& s, Comparison& c) { torch(s, c, /*packed=*/true); }},
        {"torch.separate", [](Scope& s, Comparison& c) { torch(s, c, /*packed=*/false); }},
        {"ladder.parameter-free", parameter_free_attention},
        {"ladder.shared-projection", shared},
        {"ladder.unscaled", unscaled},
        {"ladder.positions", positions},
        {"ladder.multihead-v1", multihead_of_notebook},
        {"columns.attention", columns},
        {"columns.weights", columns_with_weights},
        {"columns.single-query", one_query},
        {"columns.multihead", columns_multihead},
    };
    if constexpr (has_log<Scope>) {
      all.push_back({"attention.log-sum-exp", log_sum_exps});
      all.push_back({"partial.merge-by-log-sum-exp", merge_by_log_sum_exp});
    }
    return all;
  }

 private:
  static T minus_infinity() { return ScalarTraits<T>::minus_infinity(); }
  static Table table(const M& a) { return written::table(a); }

  /// Q, K, V and the scale, M x dk, N x dk, N x dv.
  struct Problem {
    M q, k, v;
    T scale;
    Problem(Scope& scope, Index rows, Index keys, Index dk = 2, Index dv = 2)
        : q(fresh_matrix(scope, "q", rows, dk)),
          k(fresh_matrix(scope, "k", keys, dk)),
          v(fresh_matrix(scope, "v", keys, dv)),
          scale(scope.positive("s")) {}
    [[nodiscard]] written::Attention<T> formula(const written::Score<T>& score,
                                                const written::Sees& sees = written::everything) const {
      return written::attention(table(q), table(k), table(v), score, sees);
    }
    [[nodiscard]] written::Attention<T> formula(const written::Sees& sees = written::everything) const {
      return formula(written::scaled(scale), sees);
    }
  };

  static void softmax_of_a_row(Scope& scope, Comparison& c) {
    const V x = fresh_vector(scope, "x", 3);
    const T z = written::e(x(0)) + written::e(x(1)) + written::e(x(2));
    const V weights = softmax(x);
    for (Index j = 0; j < 3; ++j) c.entry(weights(j), written::e(x(j)) / z, "softmax(x)");
    // The state that is kept: terms_j e^reference = e^(x_j), whatever the reference is.
    const Exponentials<T> state = exponentials(x);
    const T up = written::e(state.reference);
    for (Index j = 0; j < 3; ++j) c.entry(state.terms(j) * up, written::e(x(j)), "terms");
    c.entry(state.sum * up, z, "sum");
  }
  static void softmax_with_hidden_entries(Scope& scope, Comparison& c) {
    V x = fresh_vector(scope, "x", 3);
    x(1) = minus_infinity();
    const T z = written::e(x(0)) + written::e(x(2));
    c.same(softmax(x), {written::e(x(0)) / z, written::zero<T>(), written::e(x(2)) / z}, "softmax(x)");
  }
  static void softmax_of_matrices(Scope& scope, Comparison& c) {
    const M a = fresh_matrix(scope, "a", 2, 3);
    const auto by_rows = [](const Table& t) {
      Table weights;
      for (const std::vector<T>& row : t) {
        const T z = written::sum<T>(row.size(), [&](At j) { return written::e(row[j]); });
        weights.emplace_back();
        for (const T& x : row) weights.back().push_back(written::e(x) / z);
      }
      return weights;
    };
    c.same(softmax_rows(a), by_rows(table(a)), "softmax_rows");
    c.same(softmax_columns(a), written::transposed(by_rows(written::transposed(table(a)))), "softmax_columns");
  }
  static void matrix_product(Scope& scope, Comparison& c) {
    const M a = fresh_matrix(scope, "a", 2, 3), b = fresh_matrix(scope, "b", 3, 2);
    c.same(product(a, b), written::projected(table(a), table(b)), "AB");
  }

  static void attention_itself(Scope& scope, Comparison& c) {
    for (const auto& [rows, keys, width, values] :
         std::vector<std::array<Index, 4>>{{2, 3, 2, 2}, {3, 2, 2, 1}, {1, 3, 3, 1}}) {
      const Problem p(scope, rows, keys, width, values);
      c.same(attention(p.q, p.k, p.v, p.scale), p.formula().out, "attention");
    }
  }
  static void scores_and_weights(Scope& scope, Comparison& c) {
    const Problem p(scope, 2, 3);
    const written::Attention<T> formula = p.formula();
    const M scores = masked_scores(p.q, p.k, p.scale);
    c.same(scores, formula.scores, "masked_scores");
    c.same(attention_weights(p.q, p.k, p.scale), formula.weights, "attention_weights");
    c.same(weighted_values(scores, softmax_rows(scores), p.v), formula.out, "weighted_values");
  }
  static void log_sum_exps(Scope& scope, Comparison& c) {
    if constexpr (has_log<Scope>) {
      const Problem p(scope, 2, 3);
      std::vector<T> logs;
      for (const T& z : p.formula().sums) logs.push_back(ScalarTraits<T>::log(z));
      c.same(mattn_lse(p.q, p.k, p.v, p.scale).lse, logs, "lse");
    }
  }

  /// B with one hidden entry in row 0; everything else is any number.
  static M bias(Scope& scope, Index rows, Index keys) {
    M b = fresh_matrix(scope, "b", rows, keys);
    b(0, 1) = minus_infinity();
    return b;
  }
  static bool sees_all_but_0_1(At i, At j) { return !(i == 0 && j == 1); }

  static written::Score<T> score(const T& scale, const M& b, MaskConvention convention) {
    return convention == MaskConvention::post_scale ? written::post_scale(scale, table(b))
                                                    : written::pre_scale(scale, table(b));
  }
  static void additive(Scope& scope, Comparison& c, MaskConvention convention) {
    const Problem p(scope, 2, 3);
    const M b = bias(scope, 2, 3);
    const written::Attention<T> formula = p.formula(score(p.scale, b, convention), sees_all_but_0_1);
    const Mask<T> mask = additive_mask(b, convention);
    c.same(mattn(p.q, p.k, p.v, p.scale, mask), formula.out, "mattn");
    c.same(attention_weights(p.q, p.k, p.scale, mask), formula.weights, "weights");
  }
  static void capped(Scope& scope, Comparison& c) {
    const Problem p(scope, 2, 3);
    const M b = bias(scope, 2, 3);
    const T cap = scope.positive("C");
    const written::Table<T> added = written::table(b);
    const written::Score<T> after = [&](const T& qk, At i, At j) {
      return added[i][j] + tanh_of(T(qk * p.scale / cap)) * cap;
    };
    const written::Attention<T> formula = p.formula(after, sees_all_but_0_1);
    Mask<T> mask = additive_mask(b, MaskConvention::post_scale);
    mask.softcap = cap;
    c.same(mattn(p.q, p.k, p.v, p.scale, mask), formula.out, "mattn");
    c.same(attention_weights(p.q, p.k, p.scale, mask), formula.weights, "weights");
  }
  static void sloped(Scope& scope, Comparison& c) {
    const Problem p(scope, 2, 3);
    const T slope = scope.positive("m");
    const M b = bias(scope, 2, 3);
    const written::Table<T> added = written::table(b);
    for (const Causal alignment : {Causal::top_left, Causal::bottom_right}) {
      // Of two rows and three keys; the second key is where the last row of the first alignment is, and the first row
      // of the other.
      const At distances[2][2][3] = {{{0, 1, 2}, {1, 0, 1}}, {{1, 0, 1}, {2, 1, 0}}};
      const written::Score<T> away = [&](const T& qk, At i, At j) {
        T s = added[i][j] + qk * p.scale;
        for (At l = 0; l < distances[alignment == Causal::bottom_right ? 1 : 0][i][j]; ++l) s = s - slope;
        return s;
      };
      const written::Attention<T> formula = p.formula(away, sees_all_but_0_1);
      Mask<T> mask = additive_mask(b, MaskConvention::post_scale);
      mask.slope = slope;
      mask.positions.alignment = alignment;
      c.same(mattn(p.q, p.k, p.v, p.scale, mask), formula.out, "mattn");
      c.same(attention_weights(p.q, p.k, p.scale, mask), formula.weights, "weights");
    }
  }
  static void dropped(Scope& scope, Comparison& c) {
    const Problem p(scope, 2, 3);
    const T share = scope.positive("1 - p");
    // Of the second row the first key is dropped; the first row keeps all that it sees.
    const auto keeps = [](At i, At j) { return i == 0 || j > 0; };
    const written::Score<T> scaled = [&](const T& qk, At, At) { return qk * p.scale; };
    const written::Attention<T> formula = p.formula(scaled, sees_all_but_0_1);
    const written::Table<T> values = written::table(p.v);
    written::Table<T> out(2);
    for (At i = 0; i < 2; ++i)
      for (At column = 0; column < values[0].size(); ++column) {
        std::vector<T> terms;
        for (At j = 0; j < 3; ++j)
          if (keeps(i, j) && sees_all_but_0_1(i, j)) terms.push_back(values[j][column] * formula.weights[i][j] / share);
        out[i].push_back(written::sum<T>(terms.size(), [&](At l) { return terms[l]; }));
      }
    BoolMatrix shown = BoolMatrix::Constant(2, 3, true), kept = shown;
    shown(0, 1) = kept(1, 0) = false;
    Mask<T> mask = boolean_mask<T>(shown);
    mask.kept = kept;
    mask.kept_share = share;
    c.same(mattn(p.q, p.k, p.v, p.scale, mask), out, "mattn");
    const PartialAttention<T> left = partial_attention(p.q, p.k, p.v, p.scale, mask, 0, 2),
                              right = partial_attention(p.q, p.k, p.v, p.scale, mask, 2, 3);
    c.same(finish(merge(left, right)).out, out, "in two parts");
  }
  static BoolMatrix pattern(Index rows, Index keys) {
    BoolMatrix allowed = BoolMatrix::Constant(rows, keys, true);
    allowed(0, 0) = false;
    allowed(1, 1) = allowed(1, 2) = false;
    return allowed;
  }
  static void boolean(Scope& scope, Comparison& c) {
    const Problem p(scope, 2, 3);
    const BoolMatrix allowed = pattern(2, 3);
    const auto sees = [&](At i, At j) { return allowed(static_cast<Index>(i), static_cast<Index>(j)); };
    c.same(mattn(p.q, p.k, p.v, p.scale, boolean_mask<T>(allowed)), p.formula(sees).out, "mattn");
  }
  static void boolean_as_additive(Scope& scope, Comparison& c) {
    const Problem p(scope, 2, 3);
    const BoolMatrix allowed = pattern(2, 3);
    const auto sees = [&](At i, At j) { return allowed(static_cast<Index>(i), static_cast<Index>(j)); };
    for (const MaskConvention convention : {MaskConvention::post_scale, MaskConvention::pre_scale})
      c.same(mattn(p.q, p.k, p.v, p.scale, additive_mask(additive_from<T>(allowed), convention)), p.formula(sees).out,
             "mattn");
  }
  /// Row i sees key j iff j <= i, or j - i <= N - M.
  static bool causally(Causal form, At i, At j, Index rows, Index keys) {
    const auto row = static_cast<Index>(i), key = static_cast<Index>(j);
    return form == Causal::top_left ? row >= key : key - row <= keys - rows;
  }
  static void causal(Scope& scope, Comparison& c, Causal form) {
    for (const Index rows : {2, 3}) {
      const Index keys = form == Causal::top_left ? 5 - rows : 3;  // a bottom-right row needs a key
      const Problem p(scope, rows, keys);
      const auto sees = [&](At i, At j) { return causally(form, i, j, rows, keys); };
      c.same(mattn(p.q, p.k, p.v, p.scale, causal_mask<T>(form)), p.formula(sees).out, "mattn");
    }
  }
  static void window(Scope& scope, Comparison& c) {
    constexpr Index rows = 2, keys = 3;
    for (const Causal alignment : {Causal::top_left, Causal::bottom_right}) {
      for (const Index left : {0, 1}) {
        const Index right = 1 - left;
        const Problem p(scope, rows, keys);
        const auto sees = [&](At i, At j) {
          const Index position = static_cast<Index>(i) + (alignment == Causal::bottom_right ? keys - rows : 0);
          return position - left <= static_cast<Index>(j) && static_cast<Index>(j) <= position + right;
        };
        Mask<T> mask;
        mask.positions = {.window_left = left, .window_right = right, .alignment = alignment};
        c.same(mattn(p.q, p.k, p.v, p.scale, mask), p.formula(sees).out, "mattn");
      }
    }
  }
  static void chunk(Scope& scope, Comparison& c) {
    constexpr Index rows = 3, keys = 4, length = 2;
    for (const Causal alignment : {Causal::top_left, Causal::bottom_right}) {
      const Problem p(scope, rows, keys);
      const auto sees = [&](At i, At j) {
        const At position = i + static_cast<At>(alignment == Causal::bottom_right ? keys - rows : 0);
        return position / length == j / length;
      };
      Mask<T> mask;
      mask.positions = {.alignment = alignment, .chunk = length};
      c.same(mattn(p.q, p.k, p.v, p.scale, mask), p.formula(sees).out, "mattn");
    }
  }
  static void all_parts(Scope& scope, Comparison& c) {
    const Problem p(scope, 2, 3);
    Mask<T> mask = additive_mask(fresh_matrix(scope, "b", 2, 3), MaskConvention::pre_scale);
    mask.positions.causal = Causal::bottom_right;
    mask.allowed = pattern(2, 3);
    const auto sees = [&](At i, At j) {
      return causally(Causal::bottom_right, i, j, 2, 3) && pattern(2, 3)(static_cast<Index>(i), static_cast<Index>(j));
    };
    c.same(mattn(p.q, p.k, p.v, p.scale, mask), p.formula(written::pre_scale(p.scale, table(*mask.additive)), sees).out,
           "mattn");
  }
  static void renormalised(Scope& scope, Comparison& c) {
    const Problem p(scope, 2, 3);
    const BoolMatrix allowed = pattern(2, 3);
    const auto sees = [&](At i, At j) { return allowed(static_cast<Index>(i), static_cast<Index>(j)); };
    c.same(mattn_renormalised(p.q, p.k, p.v, p.scale, boolean_mask<T>(allowed)), p.formula(sees).out,
           "mattn_renormalised");
  }

  static void grouped(Scope& scope, Comparison& c) {
    const Index batch = 2, heads = 4, kv_heads = 2;
    const T scale = scope.positive("s");
    std::vector<M> q, k, v;
    for (Index page = 0; page < batch * heads; ++page)
      q.push_back(fresh_matrix(scope, "q" + std::to_string(page), 1, 2));
    for (Index page = 0; page < batch * kv_heads; ++page) {
      k.push_back(fresh_matrix(scope, "k" + std::to_string(page), 2, 2));
      v.push_back(fresh_matrix(scope, "v" + std::to_string(page), 2, 1));
    }
    const auto results = grouped_attention(q, k, v, batch, heads, kv_heads, scale);
    for (At b = 0; b < 2; ++b) {
      for (At h = 0; h < 4; ++h) {
        const At key = b * 2 + (h < 2 ? 0 : 1);
        c.same(results[b * 4 + h].out,
               written::attention(table(q[b * 4 + h]), table(k[key]), table(v[key]), written::scaled(scale)).out,
               "page");
      }
    }
  }

  // sum e^reference = sum_j e^(s_j) and values e^reference = sum_j e^(s_j) v_j over the keys of the block.
  static void partial_state(Scope& scope, Comparison& c) {
    const Problem p(scope, 2, 3);
    const written::Attention<T> formula = p.formula();
    const PartialAttention<T> state = partial_attention(p.q, p.k, p.v, p.scale, Mask<T>{}, 1, 3);
    for (Index i = 0; i < 2; ++i) {
      const std::vector<T>& e = formula.exponentials[static_cast<At>(i)];
      const T up = written::e(state.reference(i));
      c.entry(state.sum(i) * up, e[1] + e[2], "sum");
      for (Index d = 0; d < 2; ++d) c.entry(state.values(i, d) * up, e[1] * p.v(1, d) + e[2] * p.v(2, d), "values");
    }
  }
  static void split_and_merge(Scope& scope, Comparison& c) {
    const Problem p(scope, 2, 3);
    M b = fresh_matrix(scope, "b", 2, 3);
    b(0, 0) = b(1, 2) = minus_infinity();  // the first block has nothing for row 0, the last nothing for row 1
    const Mask<T> mask = additive_mask(b);
    const auto sees = [](At i, At j) { return !((i == 0 && j == 0) || (i == 1 && j == 2)); };
    const written::Attention<T> formula = p.formula(written::post_scale(p.scale, table(b)), sees);
    const auto part = [&](Index first, Index last) {
      return partial_attention(p.q, p.k, p.v, p.scale, mask, first, last);
    };
    const auto check = [&](const PartialAttention<T>& merged) {
      const AttentionResult<T> result = finish(merged);
      c.same(result.out, formula.out, "merged");
      if constexpr (has_log<Scope>) {
        std::vector<T> logs;
        logs.reserve(formula.sums.size());
        for (const T& z : formula.sums) logs.push_back(ScalarTraits<T>::log(z));
        c.same(result.lse, logs, "lse");
      }
    };
    check(part(0, 3));
    check(merge(part(0, 1), part(1, 3)));
    check(merge(part(2, 3), part(0, 2)));
    check(merge(merge(part(0, 1), part(1, 2)), part(2, 3)));
    check(merge(part(0, 1), merge(part(1, 2), part(2, 3))));
    check(merge(part(1, 1), part(0, 3)));
  }
  // O = (sum over blocks of e^(lse_b) O_b) / (sum over blocks of e^(lse_b)): attention.split-merge.
  static void merge_by_log_sum_exp(Scope& scope, Comparison& c) {
    if constexpr (has_log<Scope>) {
      const Problem p(scope, 1, 3);
      const auto block = [&](Index first, Index count) {
        return mattn_lse<T>(p.q, p.k.middleRows(first, count), p.v.middleRows(first, count), p.scale);
      };
      const AttentionResult<T> left = block(0, 1), right = block(1, 2), whole = block(0, 3);
      const T from_left = written::e(T(left.lse(0) - whole.lse(0))),
              from_right = written::e(T(right.lse(0) - whole.lse(0)));
      for (Index d = 0; d < 2; ++d)
        c.entry(whole.out(0, d), from_left * left.out(0, d) + from_right * right.out(0, d), "merged");
      c.entry(from_left + from_right, ScalarTraits<T>::from_double(1.0), "weights of the blocks");
    }
  }

  static Projection<T> projection(Scope& scope, const std::string& name, Index from, Index to) {
    return {.weight = fresh_matrix(scope, "w" + name, from, to), .bias = fresh_vector(scope, "b" + name, to)};
  }
  /// c_q x dk, c_k x dk, c_v x dv, with biases.
  static Weights<T> weights(Scope& scope, const std::string& name, Index c_q, Index c_k, Index c_v, Index dk,
                            Index dv) {
    return {.q = projection(scope, name + "q", c_q, dk),
            .k = projection(scope, name + "k", c_k, dk),
            .v = projection(scope, name + "v", c_v, dv)};
  }
  static Table projected(const M& x, const Projection<T>& w) {
    return written::projected(table(x), table(w.weight), w.bias ? written::list(*w.bias) : std::vector<T>{});
  }
  static written::Attention<T> formula_w(const M& q, const M& k, const M& v, const Weights<T>& w,
                                         const written::Score<T>& score,
                                         const written::Sees& sees = written::everything) {
    return written::attention(projected(q, w.q), projected(k, w.k), projected(v, w.v), score, sees);
  }
  static void projection_alone(Scope& scope, Comparison& c) {
    const M x = fresh_matrix(scope, "x", 2, 3);
    const Projection<T> w = projection(scope, "", 3, 2);
    c.same(project(x, w), projected(x, w), "XW + 1b^T");
    const Projection<T> none{.weight = w.weight, .bias = std::nullopt};
    c.same(project(x, none), projected(x, none), "XW");
  }
  /// Q 2 x 2, K 2 x 3, V 2 x 1: c_q, c_k and c_v differ.
  struct Weighted {
    M q, k, v;
    Weights<T> w;
    T scale;
    explicit Weighted(Scope& scope)
        : q(fresh_matrix(scope, "q", 2, 2)),
          k(fresh_matrix(scope, "k", 2, 3)),
          v(fresh_matrix(scope, "v", 2, 1)),
          w(weights(scope, "", 2, 3, 1, 2, 2)),
          scale(scope.positive("s")) {}
  };
  static void weighted(Scope& scope, Comparison& c) {
    const Weighted p(scope);
    c.same(attn_w(p.q, p.k, p.v, p.w, p.scale), formula_w(p.q, p.k, p.v, p.w, written::scaled(p.scale)).out, "attn_w");
  }
  static void masked_weighted(Scope& scope, Comparison& c) {
    const Weighted p(scope);
    const M b = bias(scope, 2, 2);
    for (const MaskConvention convention : {MaskConvention::post_scale, MaskConvention::pre_scale})
      c.same(mattn_w(p.q, p.k, p.v, p.w, p.scale, additive_mask(b, convention)),
             formula_w(p.q, p.k, p.v, p.w, score(p.scale, b, convention), sees_all_but_0_1).out, "mattn_w");
  }
  static void self(Scope& scope, Comparison& c) {
    const M x = fresh_matrix(scope, "x", 2, 2);
    const Weights<T> w = weights(scope, "", 2, 2, 2, 2, 2);
    const T scale = scope.positive("s");
    c.same(sattn(x, w, scale), formula_w(x, x, x, w, written::scaled(scale)).out, "sattn");
  }
  static void masked_self(Scope& scope, Comparison& c) {
    const M x = fresh_matrix(scope, "x", 2, 2), b = bias(scope, 2, 2);
    const Weights<T> w = weights(scope, "", 2, 2, 2, 2, 2);
    const T scale = scope.positive("s");
    c.same(msattn(x, w, scale, additive_mask(b)),
           formula_w(x, x, x, w, written::post_scale(scale, table(b)), sees_all_but_0_1).out, "msattn");
  }
  static void bilinear(Scope& scope, Comparison& c) {
    const M x = fresh_matrix(scope, "x", 2, 2), w_q = fresh_matrix(scope, "wq", 2, 2),
            w_k = fresh_matrix(scope, "wk", 2, 2);
    const T scale = scope.positive("s");
    Table formula(2);
    for (Index i = 0; i < 2; ++i) {
      for (Index j = 0; j < 2; ++j) {
        // sum over a, b, d of x_ia W_Q,ad W_K,bd x_jb
        T total = written::zero<T>();
        for (Index a = 0; a < 2; ++a)
          for (Index b = 0; b < 2; ++b)
            for (Index d = 0; d < 2; ++d) total = total + x(i, a) * w_q(a, d) * w_k(b, d) * x(j, b);
        formula[static_cast<At>(i)].push_back(total * scale);
      }
    }
    c.same(bilinear_scores(x, w_q, w_k, scale), formula, "bilinear_scores");
    const Projection<T> only_q{.weight = w_q, .bias = std::nullopt}, only_k{.weight = w_k, .bias = std::nullopt};
    c.same(masked_scores(project(x, only_q), project(x, only_k), scale), formula, "masked_scores");
  }
  static void packed(Scope& scope, Comparison& c, Packing packing) {
    const Index heads = 2, dk = 2, dv = 1;
    const M x = fresh_matrix(scope, "x", 2, 2);
    const Fused<T> w{.q = fresh_matrix(scope, "wq", 2, heads * dk),
                     .k = fresh_matrix(scope, "wk", 2, heads * dk),
                     .v = fresh_matrix(scope, "wv", 2, heads * dv)};
    const M all = pack_qkv(w, heads, packing);
    // Where column a of head m of q, k and v lies.
    const auto column = [&](Index which, Index m, Index a) -> Index {
      const Index width[] = {dk, dk, dv};
      Index at = a;
      for (Index before = 0; before < which; ++before)
        at += packing == Packing::blocks ? heads * width[before] : width[before];
      return at + m * (packing == Packing::blocks ? width[which] : 2 * dk + dv);
    };
    const M* const parts[] = {&w.q, &w.k, &w.v};
    for (Index which = 0; which < 3; ++which)
      for (Index m = 0; m < heads; ++m)
        for (Index a = 0; a < (which == 2 ? dv : dk); ++a)
          for (Index row = 0; row < 2; ++row)
            c.entry(all(row, column(which, m, a)), (*parts[which])(row, m * (which == 2 ? dv : dk) + a),
                    "packed column");
    const Fused<T> split = unpack_qkv(product(x, all), heads, dk, dv, packing);
    c.same(split.q, written::projected(table(x), table(w.q)), "Q");
    c.same(split.k, written::projected(table(x), table(w.k)), "K");
    c.same(split.v, written::projected(table(x), table(w.v)), "V");
  }

  /// Sizes of every multi-head check.
  static constexpr Index few_heads = 2, key_width = 2, value_width = 1, out_width = 2;
  static MultiheadWeights<T> multihead_weights(Scope& scope, Index c_q, Index c_k, Index c_v) {
    return {.q = projection(scope, "q", c_q, few_heads * key_width),
            .k = projection(scope, "k", c_k, few_heads * key_width),
            .v = projection(scope, "v", c_v, few_heads * value_width),
            .w_o = fresh_matrix(scope, "wo", few_heads * value_width, out_width),
            .b_o = fresh_vector(scope, "bo", out_width),
            .bias_k = std::nullopt,
            .bias_v = std::nullopt,
            .heads = few_heads};
  }
  /// The problem of every multi-head check: M = N = 2, c_q = 1, c_k = 2, c_v = 1.
  struct Multihead {
    M q, k, v;
    MultiheadWeights<T> w;
    T scale;
    explicit Multihead(Scope& scope)
        : q(fresh_matrix(scope, "q", 2, 1)),
          k(fresh_matrix(scope, "k", 2, 2)),
          v(fresh_matrix(scope, "v", 2, 1)),
          w(multihead_weights(scope, 1, 2, 1)),
          scale(scope.positive("s")) {}
  };
  /// What one head adds to its scores and hides.
  struct HeadMask {
    written::Score<T> score;
    written::Sees sees = written::everything;
  };
  /// O_m of 000: head m projects with its own columns of the weights. Appended rows of K and V (add_bias_kv) come last.
  static written::Attention<T> head_formula(const M& q, const M& k, const M& v, const MultiheadWeights<T>& w, At m,
                                            const HeadMask& mask) {
    const auto part = [m](const M& x, const Projection<T>& p, At width) {
      return written::projected(table(x), table(p.weight), written::list(*p.bias), m * width, width);
    };
    Table keys = part(k, w.k, key_width), values = part(v, w.v, value_width);
    const auto append = [m](Table& rows, const std::optional<V>& learned, At width) {
      if (!learned) return;
      rows.emplace_back();
      for (At a = 0; a < width; ++a) rows.back().push_back((*learned)(static_cast<Index>(m * width + a)));
    };
    append(keys, w.bias_k, key_width);
    append(values, w.bias_v, value_width);
    return written::attention(part(q, w.q, key_width), keys, values, mask.score, mask.sees);
  }
  /// [O_1 | ... | O_h] before W_o.
  static Table heads_formula(const M& q, const M& k, const M& v, const MultiheadWeights<T>& w,
                             const std::vector<HeadMask>& masks) {
    Table all;
    for (At m = 0; m < masks.size(); ++m) all = written::beside(all, head_formula(q, k, v, w, m, masks[m]).out);
    return all;
  }
  static Table multihead_formula(const M& q, const M& k, const M& v, const MultiheadWeights<T>& w,
                                 const std::vector<HeadMask>& masks) {
    return written::projected(heads_formula(q, k, v, w, masks), table(*w.w_o), written::list(*w.b_o));
  }
  static std::vector<HeadMask> unmasked(const T& scale) { return {{written::scaled(scale)}, {written::scaled(scale)}}; }
  /// A mask per head: the first adds B1 and hides (0, 1), the second adds B2 before the scale and is causal.
  struct TwoMasks {
    M first, second;
    explicit TwoMasks(Scope& scope) : first(bias(scope, 2, 2)), second(fresh_matrix(scope, "B", 2, 2)) {}
    [[nodiscard]] std::vector<Mask<T>> core() const {
      std::vector<Mask<T>> masks{additive_mask(first), additive_mask(second, MaskConvention::pre_scale)};
      masks[1].positions.causal = Causal::top_left;
      return masks;
    }
    [[nodiscard]] std::vector<HeadMask> formula(const T& scale) const {
      return {{written::post_scale(scale, table(first)), sees_all_but_0_1},
              {written::pre_scale(scale, table(second)), [](At i, At j) { return i >= j; }}};
    }
  };
  static HeadMasks<T> stack(const TwoMasks& masks) { return HeadMasks<T>::three_d(masks.core(), 1, few_heads); }

  static void multihead(Scope& scope, Comparison& c) {
    const Multihead p(scope);
    c.same(mhattn(p.q, p.k, p.v, p.w, p.scale), multihead_formula(p.q, p.k, p.v, p.w, unmasked(p.scale)), "mhattn");
  }
  static void masked_multihead(Scope& scope, Comparison& c) {
    const Multihead p(scope);
    const TwoMasks masks(scope);
    c.same(mmhattn(p.q, p.k, p.v, p.w, p.scale, stack(masks)),
           multihead_formula(p.q, p.k, p.v, p.w, masks.formula(p.scale)), "mmhattn");
    const auto results = head_outputs(p.q, p.k, p.v, p.w, p.scale, stack(masks));
    for (At m = 0; m < 2; ++m)
      c.same(results[m].out, head_formula(p.q, p.k, p.v, p.w, m, masks.formula(p.scale)[m]).out, "head_outputs");
  }
  static void multihead_self(Scope& scope, Comparison& c) {
    const M x = fresh_matrix(scope, "x", 2, 1);
    const MultiheadWeights<T> w = multihead_weights(scope, 1, 1, 1);
    const T scale = scope.positive("s");
    c.same(mhsattn(x, w, scale), multihead_formula(x, x, x, w, unmasked(scale)), "mhsattn");
  }
  static void masked_multihead_self(Scope& scope, Comparison& c) {
    const M x = fresh_matrix(scope, "x", 2, 1);
    const MultiheadWeights<T> w = multihead_weights(scope, 1, 1, 1);
    const T scale = scope.positive("s");
    const TwoMasks masks(scope);
    c.same(mmhsattn(x, w, scale, stack(masks)), multihead_formula(x, x, x, w, masks.formula(scale)), "mmhsattn");
  }
  static void multihead_as_sum(Scope& scope, Comparison& c) {
    const Multihead p(scope);
    const TwoMasks masks(scope);
    c.same(mmhattn_as_sum(p.q, p.k, p.v, p.w, p.scale, stack(masks)),
           multihead_formula(p.q, p.k, p.v, p.w, masks.formula(p.scale)), "mmhattn_as_sum");
  }
  static void multihead_without_output_projection(Scope& scope, Comparison& c) {
    Multihead p(scope);
    p.w.w_o.reset();
    p.w.b_o.reset();
    const Table formula = heads_formula(p.q, p.k, p.v, p.w, unmasked(p.scale));
    c.same(mhattn(p.q, p.k, p.v, p.w, p.scale), formula, "mhattn");
    c.same(mmhattn_as_sum(p.q, p.k, p.v, p.w, p.scale, HeadMasks<T>()), formula, "mmhattn_as_sum");
  }
  static void fused_heads(Scope& scope, Comparison& c) {
    const M q = fresh_matrix(scope, "q", 1, 2), k = fresh_matrix(scope, "k", 2, 2), v = fresh_matrix(scope, "v", 2, 2);
    const std::vector<Weights<T>> separate{weights(scope, "A", 2, 2, 2, 2, 1), weights(scope, "B", 2, 2, 2, 2, 1)};
    const M w_o = fresh_matrix(scope, "wo", 2, 2);
    const T scale = scope.positive("s");
    Table all;
    for (const Weights<T>& w : separate) all = written::beside(all, formula_w(q, k, v, w, written::scaled(scale)).out);
    c.same(mhattn(q, k, v, fuse<T>(separate, w_o), scale), written::projected(all, table(w_o)), "fuse");
    c.same(attn_w(q, k, v, head_of(fuse<T>(separate), 1), scale),
           formula_w(q, k, v, separate[1], written::scaled(scale)).out, "head_of");
  }
  static void bias_kv(Scope& scope, Comparison& c) {
    Multihead p(scope);
    p.w.bias_k = fresh_vector(scope, "biask", few_heads * key_width);
    p.w.bias_v = fresh_vector(scope, "biasv", few_heads * value_width);
    const TwoMasks masks(scope);
    // Key 2 is the appended one: seen by every row, nothing added to its score.
    std::vector<HeadMask> formula = masks.formula(p.scale);
    for (HeadMask& mask : formula) {
      mask = {.score = [inner = mask.score, scale = p.scale](const T& qk, At i, At j) -> T {
                return j < 2 ? inner(qk, i, j) : T(qk * scale);
              },
              .sees = [inner = mask.sees](At i, At j) { return j == 2 || inner(i, j); }};
    }
    c.same(mmhattn(p.q, p.k, p.v, p.w, p.scale, stack(masks)), multihead_formula(p.q, p.k, p.v, p.w, formula),
           "mmhattn");
  }
  // The 2-D, 3-D and 4-D forms of a mask: page (b, h) is b*heads + h.
  static void batch_of_masks(Scope& scope, Comparison& c) {
    std::vector<M> q, k, v, b;
    const T scale = scope.positive("s");
    for (int entry = 0; entry < 2; ++entry) {
      const std::string name = std::to_string(entry);
      q.push_back(fresh_matrix(scope, "q" + name, 1, 1)), k.push_back(fresh_matrix(scope, "k" + name, 2, 1));
      v.push_back(fresh_matrix(scope, "v" + name, 2, 1));
    }
    for (int page = 0; page < 4; ++page) b.push_back(fresh_matrix(scope, "b" + std::to_string(page), 1, 2));
    MultiheadWeights<T> w = multihead_weights(scope, 1, 1, 1);
    const auto check = [&](const MaskStack<T>& masks, const std::function<At(At entry, At m)>& page,
                           const std::string& form) {
      const std::vector<M> core = mmhattn_batch(q, k, v, w, scale, masks);
      for (At entry = 0; entry < 2; ++entry) {
        std::vector<HeadMask> each;
        each.reserve(2);
        for (At m = 0; m < 2; ++m) each.push_back({written::post_scale(scale, table(b[page(entry, m)]))});
        c.same(core[entry], multihead_formula(q[entry], k[entry], v[entry], w, each), form);
      }
    };
    const auto pages = [&](At count) {
      std::vector<Mask<T>> all;
      all.reserve(count);
      for (At page = 0; page < count; ++page) all.push_back(additive_mask(b[page]));
      return all;
    };
    check(MaskStack<T>::two_d(additive_mask(b[0])), [](At, At) { return At{0}; }, "2-D");
    check(MaskStack<T>::three_d(pages(4), 2, 2), [](At entry, At m) { return 2 * entry + m; }, "3-D");
    check(MaskStack<T>::four_d(pages(2), 2, 1), [](At entry, At) { return entry; }, "4-D, per entry");
    check(MaskStack<T>::four_d(pages(2), 1, 2), [](At, At m) { return m; }, "4-D, per head");
  }

  // torch.nn.MultiheadAttention: y = x W^T + b with [out, in] matrices, heads of d/h consecutive features.
  static void torch(Scope& scope, Comparison& c, bool packed) {
    const Index d = 4;
    const At width = 2;
    const M q = fresh_matrix(scope, "q", 1, d), k = fresh_matrix(scope, "k", 2, packed ? d : 1),
            v = fresh_matrix(scope, "v", 2, packed ? d : 2);
    const T scale = scope.positive("s");
    TorchMultihead<T> module;
    Table w_q, w_k, w_v;  // [out, in]
    if (packed) {
      module.in_proj_weight = fresh_matrix(scope, "win", 3 * d, d);
      const Table all = table(*module.in_proj_weight);
      w_q.assign(all.begin(), all.begin() + d);
      w_k.assign(all.begin() + d, all.begin() + 2 * d);
      w_v.assign(all.begin() + 2 * d, all.end());
    } else {
      module.q_proj_weight = fresh_matrix(scope, "wq", d, d);
      module.k_proj_weight = fresh_matrix(scope, "wk", d, 1);
      module.v_proj_weight = fresh_matrix(scope, "wv", d, 2);
      w_q = table(*module.q_proj_weight), w_k = table(*module.k_proj_weight), w_v = table(*module.v_proj_weight);
    }
    module.in_proj_bias = fresh_vector(scope, "bin", 3 * d);
    module.out_proj_weight = fresh_matrix(scope, "wout", d, d);
    module.out_proj_bias = fresh_vector(scope, "bout", d);
    module.heads = 2;
    const auto linear = [&](const M& x, const Table& out_in, At third) {
      Table y(static_cast<At>(x.rows()));
      for (At i = 0; i < y.size(); ++i)
        for (At o = 0; o < out_in.size(); ++o)
          y[i].push_back((*module.in_proj_bias)(static_cast<Index>(third * 4 + o)) +
                         written::sum<T>(out_in[o].size(), [&](At l) {
                           return out_in[o][l] * x(static_cast<Index>(i), static_cast<Index>(l));
                         }));
      return y;
    };
    const auto slice = [&](const Table& a, At m) {
      Table part;
      for (const std::vector<T>& row : a) {
        part.emplace_back();
        for (At l = 0; l < width; ++l) part.back().push_back(row[m * width + l]);
      }
      return part;
    };
    const Table full_q = linear(q, w_q, 0), full_k = linear(k, w_k, 1), full_v = linear(v, w_v, 2);
    Table joined;
    for (At m = 0; m < 2; ++m)
      joined = written::beside(
          joined, written::attention(slice(full_q, m), slice(full_k, m), slice(full_v, m), written::scaled(scale)).out);
    const Table formula = written::projected(joined, written::transposed(table(module.out_proj_weight)),
                                             written::list(*module.out_proj_bias));
    c.same(mhattn(q, k, v, from_torch(module), scale), formula, "from_torch");
  }

  static written::Score<T> plain() {
    return [](const T& qk, At, At) { return qk; };
  }
  static void parameter_free_attention(Scope& scope, Comparison& c) {
    const M x = fresh_matrix(scope, "x", 3, 2);
    c.same(parameter_free(x), written::attention(table(x), table(x), table(x), plain()).out, "softmax(XX^T)X");
  }
  static void shared(Scope& scope, Comparison& c) {
    const M x = fresh_matrix(scope, "x", 2, 2), u = fresh_matrix(scope, "u", 2, 2);
    const Table xu = written::projected(table(x), table(u));
    c.same(shared_projection(x, u), written::attention(xu, xu, xu, plain()).out, "softmax(XUU^TX^T)XU");
  }
  static void unscaled(Scope& scope, Comparison& c) {
    const M x = fresh_matrix(scope, "x", 2, 2);
    const Weights<T> w = weights(scope, "", 2, 2, 2, 2, 2);
    c.same(unscaled_sattn(x, w), formula_w(x, x, x, w, plain()).out, "softmax(QK^T)V");
  }
  static Table plus_positions(const M& x, const M& positions) {
    Table y = table(x);
    for (At i = 0; i < y.size(); ++i)
      for (At l = 0; l < y[i].size(); ++l) y[i][l] = positions(static_cast<Index>(i), static_cast<Index>(l)) + y[i][l];
    return y;
  }
  static void positions(Scope& scope, Comparison& c) {
    const M x = fresh_matrix(scope, "x", 2, 2), all = fresh_matrix(scope, "p", 3, 2);
    c.same(with_positions(x, all), plus_positions(x, all), "X + P");
  }
  static void multihead_of_notebook(Scope& scope, Comparison& c) {
    const M x = fresh_matrix(scope, "x", 2, 1), w_o = fresh_matrix(scope, "wo", 2, 1),
            b = fresh_matrix(scope, "b", 2, 2);
    const V b_o = fresh_vector(scope, "bo", 1);
    const T scale = scope.positive("s");
    std::vector<PositionedHead<T>> each;
    for (const std::string name : {"A", "B"})
      each.push_back({weights(scope, name, 1, 1, 1, 2, 1), fresh_matrix(scope, "p" + name, 2, 1)});
    Mask<T> mask = additive_mask(b);
    mask.positions.causal = Causal::top_left;
    Table all;
    for (const PositionedHead<T>& head : each) {
      const Table input = plus_positions(x, *head.positions);
      const auto part = [&](const Projection<T>& p) {
        return written::projected(input, table(p.weight), written::list(*p.bias));
      };
      all = written::beside(all,
                            written::attention(part(head.weights.q), part(head.weights.k), part(head.weights.v),
                                               written::post_scale(scale, table(b)), [](At i, At j) { return i >= j; })
                                .out);
    }
    c.same(multihead_v1<T>(x, each, w_o, b_o, scale, mask), written::projected(all, table(w_o), written::list(b_o)),
           "multihead_v1");
  }

  // 002: tokens are columns. A mask is keys x queries.
  static void columns(Scope& scope, Comparison& c) {
    const Problem p(scope, 2, 3);
    const BoolMatrix allowed = pattern(2, 3);
    const auto sees = [&](At i, At j) { return allowed(static_cast<Index>(i), static_cast<Index>(j)); };
    const M q = p.q.transpose(), k = p.k.transpose(), v = p.v.transpose();
    c.same(attention_columns(q, k, v, p.scale), written::transposed(p.formula().out), "unmasked");
    c.same(attention_columns<T>(q, k, v, p.scale, BoolMatrix(allowed.transpose())),
           written::transposed(p.formula(sees).out), "masked");
  }
  /// W X + b 1^T with W out x in: the row form of the transposes.
  static written::Attention<T> column_formula(const M& x, const M& z, const ColumnWeights<T>& w, const T& scale,
                                              const written::Sees& sees = written::everything) {
    const auto part = [](const M& tokens, const Projection<T>& p) {
      return written::projected(written::transposed(table(tokens)), written::transposed(table(p.weight)),
                                p.bias ? written::list(*p.bias) : std::vector<T>{});
    };
    return written::attention(part(x, w.q), part(z, w.k), part(z, w.v), written::scaled(scale), sees);
  }
  static ColumnWeights<T> column_weights(Scope& scope, const std::string& name, Index c_x, Index c_z, Index width) {
    return {
        .q = {.weight = fresh_matrix(scope, "wq" + name, 2, c_x), .bias = fresh_vector(scope, "bq" + name, 2)},
        .k = {.weight = fresh_matrix(scope, "wk" + name, 2, c_z), .bias = fresh_vector(scope, "bk" + name, 2)},
        .v = {.weight = fresh_matrix(scope, "wv" + name, width, c_z), .bias = fresh_vector(scope, "bv" + name, width)}};
  }
  static void columns_with_weights(Scope& scope, Comparison& c) {
    const M x = fresh_matrix(scope, "x", 2, 2), z = fresh_matrix(scope, "z", 1, 2);
    const T scale = scope.positive("s");
    const ColumnWeights<T> w = column_weights(scope, "", 2, 1, 2);
    BoolMatrix allowed = BoolMatrix::Constant(2, 2, true);
    allowed(1, 0) = false;  // key 1 from query 0
    const auto sees = [](At query, At key) { return !(key == 1 && query == 0); };
    c.same(attn_w_columns<T>(x, z, w, scale, allowed), written::transposed(column_formula(x, z, w, scale, sees).out),
           "attn_w_columns");
    const Weights<T> rows = weights(scope, "R", 2, 1, 1, 2, 2);
    c.same(
        attn_w_columns(x, z, columns_of(rows), scale),
        written::transposed(formula_w(x.transpose(), z.transpose(), z.transpose(), rows, written::scaled(scale)).out),
        "columns_of");
  }
  static void one_query(Scope& scope, Comparison& c) {
    const V x = fresh_vector(scope, "x", 2);
    const M z = fresh_matrix(scope, "z", 1, 3);
    const T scale = scope.positive("s");
    const ColumnWeights<T> w = column_weights(scope, "", 2, 1, 2);
    c.same(single_query(x, z, w, scale), column_formula(M(x), z, w, scale).out[0], "single_query");
  }
  static void columns_multihead(Scope& scope, Comparison& c) {
    const M x = fresh_matrix(scope, "x", 1, 1), z = fresh_matrix(scope, "z", 1, 2),
            w_o = fresh_matrix(scope, "wo", 2, 2);
    const V b_o = fresh_vector(scope, "bo", 2);
    const T scale = scope.positive("s");
    const std::vector<ColumnWeights<T>> each{column_weights(scope, "A", 1, 1, 1), column_weights(scope, "B", 1, 1, 1)};
    Table all;
    for (const ColumnWeights<T>& w : each) all = written::beside(all, column_formula(x, z, w, scale).out);
    c.same(mhattn_columns<T>(x, z, each, w_o, b_o, scale),
           written::transposed(written::projected(all, written::transposed(table(w_o)), written::list(b_o))),
           "mhattn_columns");
  }
};

}  // namespace attest::test
