#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernel/limits.h"
#include "core/kernel/manifest.h"
#include "core/problem/case.h"
#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "core/problem/kv_cache.h"
#include "core/problem/memory.h"
#include "core/problem/selection.h"
#include "core/problem/sequences.h"

namespace attest {
namespace {

template <class T>
bool has(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

template <class Enum>
std::string listed(const std::vector<Enum>& values) {
  std::vector<std::string_view> names;
  names.reserve(values.size());
  for (const Enum value : values) names.push_back(name_of(value));
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

/// Sizes of a case whichever its operation.
struct Sizes {
  std::int64_t heads, kv_heads, queries, keys, key_dim, value_dim;
};

Sizes sizes_of(const Case& c) {
  const Shape& q = c.q().shape();
  const Shape& k = c.k().shape();
  if (c.operation == Operation::attention) {
    Sizes sizes{q[1], k[1], q[2], k[2], q[3], c.v().shape()[3]};
    if (!has_variant(c, packed_variant.name)) return sizes;
    // Of sequences that stand one after another those of the longest.
    sizes.queries = sizes.keys = 0;
    for (const Sequence& s : sequences_of(c))
      sizes.queries = std::max(sizes.queries, s.queries), sizes.keys = std::max(sizes.keys, s.keys);
    return sizes;
  }
  return {c.heads, c.heads, q[1], k[1], c[Slot::w_q].shape()[1] / c.heads, c[Slot::w_v].shape()[1] / c.heads};
}

std::string why_length(std::string_view what, std::int64_t extent, const AllowedExtents& allowed) {
  const auto refused = [&](std::string_view rule, std::int64_t limit) {
    return fmt::format("has {} {}; the manifest's {}{} is {}", extent, what, rule, what, limit);
  };
  if (allowed.most && extent > *allowed.most) return refused("max_", *allowed.most);
  if (extent < allowed.least) return refused("min_", allowed.least);
  if (extent % allowed.multiple == 0) return {};
  return fmt::format("has {} {}; the manifest's {}_multiple is {}", extent, what, what, allowed.multiple);
}

std::string why_width(std::string_view what, std::int64_t width, const AllowedExtents& allowed, std::string_view key) {
  if (allowed.has(width)) return {};
  if (!allowed.list.empty())
    return fmt::format("has {} {}; the manifest's {} are {}", what, width, key, fmt::join(allowed.list, ", "));
  if (width % allowed.multiple != 0)
    return fmt::format("has {} {}; the manifest's head_dim_multiple is {}", what, width, allowed.multiple);
  return fmt::format("has {} {}; the manifest's max_head_dim is {}", what, width, allowed.most.value_or(0));
}

std::string why_heads(const Manifest& m, const Sizes& s) {
  if (m.max_heads && s.heads > *m.max_heads)
    return fmt::format("has {} heads; the manifest's max_heads is {}", s.heads, *m.max_heads);
  if (s.heads % m.heads_multiple != 0) {
    return fmt::format("has {} heads; the manifest's heads_multiple is {}", s.heads, m.heads_multiple);
  }
  if (s.kv_heads != s.heads && !m.grouped_query) {
    return fmt::format("has {} heads on {} of keys and values; the manifest's grouped_query is false", s.heads,
                       s.kv_heads);
  }
  return {};
}

std::string why_sizes(const Manifest& m, const Sizes& s) {
  for (std::string reason : {why_length("queries", s.queries, allowed_queries(m)),
                             why_length("keys", s.keys, allowed_keys(m)), why_heads(m, s)}) {
    if (!reason.empty()) return reason;
  }
  if (m.same_lengths && s.queries != s.keys)
    return fmt::format("has {} queries and {} keys; the manifest's same_lengths is true", s.queries, s.keys);
  if (m.value_dim_equals_head_dim && s.key_dim != s.value_dim) {
    return fmt::format("has dk {} and dv {}; the manifest's value_dim is head_dim", s.key_dim, s.value_dim);
  }
  if (std::string reason = why_width("dk", s.key_dim, allowed_head_dims(m), "head_dims"); !reason.empty())
    return reason;
  return why_width("dv", s.value_dim, allowed_value_dims(m), m.value_dims.empty() ? "head_dims" : "value_dims");
}

std::string why_kv_dtypes(const Manifest& m, const Case& c) {
  const KvDtypes asked{c.k().dtype(), c.v().dtype()};
  const std::vector<KvDtypes> offered = m.kv_dtypes_for(c.dtype());
  if (has(offered, asked)) return {};
  std::vector<std::string> names;
  names.reserve(offered.size());
  for (const auto& [k, v] : offered) names.push_back(fmt::format("{} and {}", name_of(k), name_of(v)));
  return fmt::format("has k in {} and v in {} beside q in {}; the manifest's kv_dtypes are {}", name_of(asked.k),
                     name_of(asked.v), name_of(c.dtype()), fmt::join(names, ", "));
}

/// What only one of the operations can miss.
std::string why_operation(const Manifest& m, const Case& c, const Sizes& s) {
  if (asks_for_gradients(c) && !m.backward)
    return "asks for gradients; the manifest's operations do not list attention_backward";
  if (c.operation == Operation::attention) {
    if (std::string reason = why_kv_dtypes(m, c); !reason.empty()) return reason;
    if (allows_heads(m, s.heads, s.kv_heads)) return {};
    return fmt::format("has {} heads to a key-value head; the manifest's group_sizes are {}", s.heads / s.kv_heads,
                       fmt::join(m.group_sizes, ", "));
  }
  if (m.model_dim_is_heads) {
    const Extents e = extents_of(c);
    if (e.c_q != e.heads * e.dk || e.d_o != e.c_q) {
      return fmt::format("has c_q {}, d_o {} and heads*dk {}; the manifest's model_dim is heads*head_dim", e.c_q, e.d_o,
                         e.heads * e.dk);
    }
  }
  if (m.self_attention_only && !(c.q() == c.k() && c.q() == c.v()))
    return "has keys or values other than its queries; the manifest's self_attention_only is true";
  return {};
}

std::string why_mask(const Manifest& m, const Case& c) {
  const Tensor& mask = c.mask();
  if (mask.present() && mask.dtype() == DType::boolean) {
    return m.bool_masks ? "" : "has a bool mask; the manifest's masks do not list bool";
  }
  if (mask.present()) {
    if (!m.additive_masks) return "has an additive mask; the manifest's masks do not list additive";
    if (mask.dtype() != c.dtype() && !has(m.mask_dtypes, mask.dtype())) {
      return fmt::format("has a mask in {}; the manifest's mask_dtypes are {}", name_of(mask.dtype()),
                         listed(m.mask_dtypes));
    }
    if (!has(m.mask_conventions, c.mask_convention)) {
      return fmt::format("has a {} mask; the manifest's mask_conventions are {}", name_of(c.mask_convention),
                         listed(m.mask_conventions));
    }
  }
  return {};
}

/// Layouts of tensors that the case has not, and of an lse that is not asked for, are nothing to ask of a kernel. Nor
/// is memory that inputs have together: it has no strides.
std::string why_strides(const Manifest& m, const Case& c) {
  if (!c.provenance.strides || (m.strides && m.zero_strides && m.far_strides)) return {};
  Layouts layouts = layouts_of(c);
  for (int i = 0; i < slot_count; ++i)
    if (const auto slot = static_cast<Slot>(i); !c[slot].present() || layouts[slot] == MemoryLayout::aliased)
      layouts[slot] = MemoryLayout::row_major;
  const MemoryLayout lse = m.lse ? layouts.lse : MemoryLayout::row_major;
  layouts.lse = MemoryLayout::row_major;
  if (layouts == Layouts()) return {};
  if (m.strides) {
    std::vector<MemoryLayout> all(layouts.inputs.begin(), layouts.inputs.end());
    all.insert(all.end(), {layouts.out, lse});
    if (!m.zero_strides && has(all, MemoryLayout::repeated))
      return fmt::format("has strides {}; the manifest's zero_strides is false", to_string(layouts));
    if (!m.far_strides && std::ranges::any_of(all, is_far))
      return fmt::format("has strides {}; the manifest's far_strides is false", to_string(layouts));
    return {};
  }
  return fmt::format("has strides {}; the manifest's strides is false", to_string(layouts));
}

std::string why_alignment(const VariantTerms& terms, const Problem& c, const Variant& variant) {
  if (!is_positional(variant.name) || c.causal != Causal::none || has(terms.alignment, c.alignment)) return {};
  return fmt::format("has {} aligned {}; the manifest's variants.{}.alignment lists {}", variant.words,
                     name_of(c.alignment), variant.name, listed(terms.alignment));
}

std::string why_alibi(const VariantTerms& terms, const Problem& c) {
  const std::int64_t rows = c[Slot::alibi_slopes].shape()[0];
  if (rows > 1 && !terms.per_batch)
    return fmt::format("has slopes for each of {} entries of a batch; the manifest's variants.alibi.per_batch is false",
                       rows);
  return {};
}

std::string why_window(const VariantTerms& terms, const Problem& c) {
  if (c.window_left >= 0 && !terms.left)
    return "has a window with a left end; the manifest's variants.window.left is false";
  if (c.window_right >= 0 && !terms.right)
    return "has a window with a right end; the manifest's variants.window.right is false";
  return {};
}

std::string why_lengths(const VariantTerms& terms, const Problem& c) {
  if (c[Slot::q_lengths].present() && !terms.queries)
    return "has lengths of queries; the manifest's variants.lengths.queries is false";
  if (c[Slot::kv_lengths].present() && !terms.keys)
    return "has lengths of keys; the manifest's variants.lengths.keys is false";
  return {};
}

std::string why_pages(const VariantTerms& terms, const Problem& c) {
  const std::int64_t page = page_size_of(c);
  if (!terms.page_sizes.empty() && !std::ranges::binary_search(terms.page_sizes, page))
    return fmt::format("has pages of {} keys; the manifest's variants.paged.page_sizes lists {}", page,
                       fmt::join(terms.page_sizes, ", "));
  if (c[Slot::page_table_v].present() && !terms.two_tables)
    return "has a table of pages for v alone; the manifest's variants.paged.two_tables is false";
  return {};
}

std::string why_dropout(const VariantTerms& terms, const Problem& c) {
  const bool own = draws_own_dropout(c);
  if (own ? terms.own : terms.given) return {};
  return own ? "has a dropout_p and no keep; the manifest's variants.dropout.mask does not list \"own\""
             : "has a mask of dropout; the manifest's variants.dropout.mask does not list \"given\"";
}

std::string why_blocks(const std::vector<std::int64_t>& taken, std::int64_t block, std::string_view key,
                       std::string_view rows) {
  if (std::ranges::binary_search(taken, block)) return {};
  return fmt::format("has a factor for every {} {}; the manifest's variants.descale.{} {}", block, rows, key,
                     taken.empty() ? std::string("lists none") : "lists " + fmt::format("{}", fmt::join(taken, ", ")));
}

std::string why_descale(const VariantTerms& terms, const Problem& c) {
  const std::pair<Slot, bool> tensors[] = {{Slot::q, terms.of_q}, {Slot::k, terms.of_k}, {Slot::v, terms.of_v}};
  for (const auto& [tensor, taken] : tensors) {
    const Tensor& factors = c[descale_of(tensor)];
    if (!factors.present()) continue;
    if (!taken)
      return fmt::format("has {}; the manifest's variants.descale.tensors does not list \"{}\"",
                         name_of(descale_of(tensor)), name_of(tensor));
    if (factors.shape()[0] > 1 && !terms.per_batch)
      return fmt::format(
          "has factors for each of {} entries of a batch; the manifest's variants.descale.per_batch is false",
          factors.shape()[0]);
    if (factors.shape()[1] > 1 && !terms.per_head)
      return fmt::format("has factors for each of {} heads; the manifest's variants.descale.per_head is false",
                         factors.shape()[1]);
    if (factors.shape()[2] == 1 || terms.any_blocks) continue;
    const bool of_q = tensor == Slot::q;
    if (std::string reason = of_q ? why_blocks(terms.q_blocks, c.q_descale_block, "q_blocks", "rows")
                                  : why_blocks(terms.kv_blocks, c.kv_descale_block, "kv_blocks", "keys");
        !reason.empty())
      return reason;
  }
  return {};
}

/// The first variant that is not listed, or not as it is here.
std::string why_variants(const Manifest& m, const Case& c) {
  for (const Variant& variant : variants_of(c)) {
    const auto found = m.variants.find(variant.name);
    if (found == m.variants.end())
      return fmt::format("has the variant {}; the manifest's variants do not list it", variant.name);
    const VariantTerms& terms = found->second;
    if (variant == window_variant)
      if (std::string reason = why_window(terms, c); !reason.empty()) return reason;
    if (variant == alibi_variant)
      if (std::string reason = why_alibi(terms, c); !reason.empty()) return reason;
    if (std::string reason = why_alignment(terms, c, variant); !reason.empty()) return reason;
    if (variant == descale_variant)
      if (std::string reason = why_descale(terms, c); !reason.empty()) return reason;
    if (variant == lengths_variant)
      if (std::string reason = why_lengths(terms, c); !reason.empty()) return reason;
    if (variant == paged_variant)
      if (std::string reason = why_pages(terms, c); !reason.empty()) return reason;
    if (variant == dropout_variant)
      if (std::string reason = why_dropout(terms, c); !reason.empty()) return reason;
    if (variant == sink_variant && !has(terms.dtypes, c[Slot::sink].dtype()))
      return fmt::format("has sinks in {}; the manifest's variants.sink.dtypes are {}", name_of(c[Slot::sink].dtype()),
                         listed(terms.dtypes));
    if (variant == append_variant && terms.max_tokens && c.append > *terms.max_tokens)
      return fmt::format("appends {} tokens; the manifest's variants.append.max_tokens is {}", c.append,
                         *terms.max_tokens);
    for (const Feature feature : terms.required)
      if (lacks(c, feature))
        return fmt::format("has the variant {} without {}; the manifest's variants.{}.requires lists it", variant.name,
                           name_of(feature), variant.name);
    for (const Feature feature : terms.excluded)
      if (has(c, feature))
        return fmt::format("has the variant {} with {}; the manifest's variants.{}.excludes lists it", variant.name,
                           name_of(feature), variant.name);
  }
  return {};
}

std::string why_backward(const Manifest& m, const Case& c) {
  if (!asks_for_gradients(c) || !m.backward) return {};
  if (c[Slot::d_lse].present() && !m.backward_terms.d_lse)
    return "has a gradient by the log-sum-exp, d_lse; the manifest's backward.d_lse is false";
  for (const Feature feature : m.backward_terms.excluded)
    if (has(c, feature))
      return fmt::format("asks for gradients and has {}; the manifest's backward.excludes lists {}", name_of(feature),
                         name_of(feature));
  if (draws_own_dropout(c) && !m.backward_terms.own_dropout)
    return "asks for gradients and has a dropout_p and no keep; the manifest's backward.own_dropout is false";
  return {};
}

}  // namespace

std::string why_unsupported(const Manifest& m, const Case& c) {
  if (!m.has(c.operation)) {
    return fmt::format("is for {}; the manifest's operations do not list it", name_of(c.operation));
  }
  if (!has(m.dtypes, c.dtype())) {
    return fmt::format("is in {}; the manifest's dtypes are {}", name_of(c.dtype()), listed(m.dtypes));
  }
  const Sizes sizes = sizes_of(c);
  if (std::string reason = why_sizes(m, sizes); !reason.empty()) return reason;
  if (!m.any_scale && !is_inverse_root(c.scale, sizes.key_dim)) {
    return fmt::format("has scale {}; the manifest's is inv-sqrt-dk, {}", c.scale, inverse_root(sizes.key_dim));
  }
  if (std::string reason = why_mask(m, c); !reason.empty()) return reason;
  if (std::string reason = why_strides(m, c); !reason.empty()) return reason;
  if (std::string reason = why_variants(m, c); !reason.empty()) return reason;
  if (std::string reason = why_backward(m, c); !reason.empty()) return reason;
  if (c.causal != Causal::none && !has(m.causal, c.causal)) {
    return fmt::format("is causal {}; the manifest's causal lists {}", name_of(c.causal), listed(m.causal));
  }
  if (std::string reason = why_operation(m, c, sizes); !reason.empty()) return reason;
  return why_features(m, c);
}

}  // namespace attest
