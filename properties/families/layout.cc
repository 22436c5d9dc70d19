// layout: identities of rearranged matrices (000, 001, 002), about the core, on its scalars and on rationals.
#include <fmt/format.h>

#include <array>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>

#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"
#include "properties/catalogue/property.h"
#include "properties/families/core_laws.h"
#include "properties/families/layout_laws.h"
#include "properties/generators/draw.h"
#include "properties/language/answer.h"

namespace attest {
namespace {

using Rational =
    boost::multiprecision::number<boost::multiprecision::cpp_rational::backend_type, boost::multiprecision::et_off>;

/// Entries of the first batch entry and head, [rows, columns], exact.
template <class T>
Matrix<T> page_of(const Tensor& t) {
  const Index columns = t.shape()[3];
  Matrix<T> m(t.shape()[2], columns);
  for (Index r = 0; r < m.rows(); ++r)
    for (Index c = 0; c < m.cols(); ++c) m(r, c) = T(t[r * columns + c]);
  return m;
}

/// Rationals grow with every product: at most 8 rows, keys and columns.
Case cropped(const Case& c) {
  Selection s = everything(c);
  for (Indices* const indices : {&s.queries, &s.keys, &s.dk, &s.dv})
    if (indices->size() > 8) indices->resize(8);
  return select(c, s);
}

bool equal_rationals(const Rational& x, const Rational& y) {
  return x == y;
}
/// +0 equals -0: a sum that begins with 0 times an entry loses its sign.
bool equal_doubles(double x, double y) {
  return x == y || (std::isnan(x) && std::isnan(y));
}

template <class T, class Same>
Verdict deletion_on(const Case& c, Same&& same) {
  const Index i = argument(c, "i", queries_of(c)), s = argument(c, "s", keys_of(c));
  const std::string broken =
      broken_deletion_identity<CoreLayout>(page_of<T>(c.q()), page_of<T>(c.k()), page_of<T>(c.v()), i, s, same);
  if (broken.empty()) return {};
  return violated(Violation::bits, fmt::format("{} fails for i = {} and s = {}", broken, i, s));
}

/// Where products of doubles overflow the identities have no numbers to speak of.
bool small_enough(const Case& c) {
  for (const Slot slot : {Slot::q, Slot::k})
    for (std::int64_t e = 0; e < c[slot].elements(); ++e)
      if (!(std::fabs(c[slot][e]) < 1e100)) return false;
  return true;
}

// 000: A^(i) = I^(i) A, (AB)^(i) = A^(i) B, (K^T)^[s] = (K^(s))^T, (1_M b^T)^(i) = 1_{M-1} b^T,
// [A|B]^(i) = [A^(i)|B^(i)]. On rationals all of it is exact; on doubles each row of a product is summed alike.
Verdict deletion_identities(Kernel& kernel, const Case& c) {
  return on_core(kernel, c, [](const CoreFunctions& core, const Case& x) -> Verdict {
    Verdict exact = deletion_on<Rational>(cropped(x), equal_rationals);
    if (small_enough(x)) exact = worse_of({exact, deletion_on<double>(x, equal_doubles)});
    // (AB)^(i) = A^(i) B on the scalar itself, with the core's own product.
    const std::int64_t i = argument(x, "i", queries_of(x)), M = queries_of(x), N = keys_of(x), dk = x.q().shape()[3];
    const auto first_page = [&](const Tensor& t, const Indices& rows) {
      Tensor page(t.dtype(), {static_cast<std::int64_t>(rows.size()), dk});
      return mapped(page,
                    [&](std::int64_t e, double) { return t[rows[static_cast<std::size_t>(e / dk)] * dk + e % dk]; });
    };
    const Tensor b = transposed(first_page(x.k(), all_of(N)));
    const Values all = core.product(first_page(x.q(), all_of(M)), b);
    const Values fewer = core.product(first_page(x.q(), all_but(M, i)), b);
    Indices kept = all_of(M * N);
    std::erase_if(kept, [&](std::int64_t e) { return e / N == i; });
    const Values deleted = all.gather(fewer.shape(), kept);
    return worse_of(
        {exact, same_bits(deleted, fewer) ? Verdict() : violated(Violation::bits, "(AB)^(i) = A^(i)B fails in bits")});
  });
}

// 001: (a i) = a p + i: a tensor with fused indices is the same memory.
Verdict index_fusion(Kernel& kernel, const Case& c) {
  return on_core(kernel, c, [](const CoreFunctions&, const Case& whole) -> Verdict {
    const Case x = cropped(whole);
    for (const Slot slot : {Slot::q, Slot::k, Slot::v}) {
      const Tensor& t = x[slot];
      const Shape& shape = t.shape();
      // [batch, heads, rows, columns] with batch and heads fused, and with heads and rows fused.
      std::vector<Rational> memory;
      memory.reserve(static_cast<std::size_t>(t.elements()));
      for (std::int64_t e = 0; e < t.elements(); ++e) memory.emplace_back(t[e]);
      std::string broken = broken_fusion<CoreLayout>(memory, shape[0], shape[1], shape[2] * shape[3], equal_rationals);
      if (broken.empty())
        broken = broken_fusion<CoreLayout>(memory, shape[0] * shape[1], shape[2], shape[3], equal_rationals);
      if (!broken.empty()) return violated(Violation::bits, fmt::format("{} of {} moved", broken, name_of(slot)));
      const Tensor fused = t.reshaped({shape[0] * shape[1] * shape[2], shape[3]});
      for (std::int64_t e = 0; e < t.elements(); ++e)
        if (fused[e] != t[e]) return violated(Violation::bits, fmt::format("element {} of {} moved", e, name_of(slot)));
    }
    return {};
  });
}

// 002: columns are the transpose of rows, the boolean mask transposed too.
Verdict columns_of_rows(Kernel& kernel, const Case& c) {
  return on_core(kernel, c, columns_are_transpose);
}

void plain_boolean(Recipe& r) {
  const MaskKind kinds[] = {MaskKind::none,       MaskKind::random, MaskKind::first_block, MaskKind::middle_block,
                            MaskKind::last_block, MaskKind::causal, MaskKind::whole_row};
  r.mask = kinds[r.seed % 7];
  r.boolean_mask = true;
  r.mask_per_batch = r.mask_per_head = false;
  r.causal = Causal::none;
}

constexpr std::array deleted{defining(hypotheses::a_query_and_a_key, "a row or a key is deleted")};
constexpr std::array transposed_problem{
    defining(hypotheses::one_boolean_mask, "002's mask is one boolean matrix"),
    defining(hypotheses::no_causal_form, "002 has its causal mask as a matrix: causal.column-form")};

const Property family[] = {
    {.name = "layout.deletion-identities",
     .statement = "A^(i) = I^(i)A, (AB)^(i) = A^(i)B, (Kᵀ)^[s] = (K^(s))ᵀ, (1_M bᵀ)^(i) = 1_{M−1}bᵀ, [A|B]^(i) = "
                  "[A^(i)|B^(i)]: what the proofs rest on",
     .source = "000",
     .needs = "core",
     .floating_point = "bitwise",
     .hypotheses = deleted,
     .given = [](Draw& draw) -> Case { return draw.attention().at_least(1, 1); },
     .check = deletion_identities},
    {.name = "layout.index-fusion",
     .statement = "(ai) = a·p + i: a tensor with fused indices is the same memory",
     .source = "001",
     .needs = "core",
     .floating_point = "bitwise",
     .given = [](Draw& draw) -> Case { return draw.attention(); },
     .check = index_fusion},
    {.name = "layout.columns-are-transpose",
     .statement = "002's column convention is the transpose of the row convention, boolean mask transposed too",
     .source = "002 000",
     .needs = "core",
     .floating_point = "bitwise",
     .wants = wants_hidden_keys,
     .hypotheses = transposed_problem,
     .given = [](Draw& draw) -> Case { return draw.attention().where(plain_boolean); },
     .check = columns_of_rows},
};

}  // namespace

std::span<const Property> layout_properties() {
  return family;
}

}  // namespace attest
