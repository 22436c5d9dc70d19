#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernel/manifest.h"
#include "core/problem/fields.h"
#include "core/problem/memory.h"

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
  if (c.operation == Operation::attention) return {q[1], k[1], q[2], k[2], q[3], c.v().shape()[3]};
  return {c.heads, c.heads, q[1], k[1], c[Slot::w_q].shape()[1] / c.heads, c[Slot::w_v].shape()[1] / c.heads};
}

std::string why_sizes(const Manifest& m, const Sizes& s) {
  const auto beyond = [](std::string_view what, std::int64_t value, std::string_view key,
                         const std::optional<std::int64_t>& most) {
    if (!most || value <= *most) return std::string();
    return fmt::format("has {} {}; the manifest's {} is {}", value, what, key, *most);
  };
  for (std::string reason :
       {beyond("queries", s.queries, "max_queries", m.max_queries), beyond("keys", s.keys, "max_keys", m.max_keys),
        beyond("heads", s.heads, "max_heads", m.max_heads)}) {
    if (!reason.empty()) return reason;
  }
  if (s.heads % m.heads_multiple != 0) {
    return fmt::format("has {} heads; the manifest's heads_multiple is {}", s.heads, m.heads_multiple);
  }
  if (s.kv_heads != s.heads && !m.grouped_query) {
    return fmt::format("has {} heads on {} of keys and values; the manifest's grouped_query is false", s.heads,
                       s.kv_heads);
  }
  if (m.value_dim_equals_head_dim && s.key_dim != s.value_dim) {
    return fmt::format("has dk {} and dv {}; the manifest's value_dim is head_dim", s.key_dim, s.value_dim);
  }
  for (const auto& [name, value] : {std::pair<std::string_view, std::int64_t>{"dk", s.key_dim}, {"dv", s.value_dim}}) {
    if (value % m.head_dim_multiple != 0) {
      return fmt::format("has {} {}; the manifest's head_dim_multiple is {}", name, value, m.head_dim_multiple);
    }
    if (m.max_head_dim && value > *m.max_head_dim) {
      return fmt::format("has {} {}; the manifest's max_head_dim is {}", name, value, *m.max_head_dim);
    }
  }
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

/// Layouts of tensors that the case has not, and of an lse that is not asked for, are nothing to ask of a kernel.
std::string why_strides(const Manifest& m, const Case& c) {
  if (m.strides || !c.provenance.strides) return {};
  Layouts layouts = layouts_of(c);
  for (int i = 0; i < slot_count; ++i)
    if (const auto slot = static_cast<Slot>(i); !c[slot].present()) layouts[slot] = MemoryLayout::row_major;
  layouts.lse = MemoryLayout::row_major;
  if (layouts == Layouts()) return {};
  return fmt::format("has strides {}; the manifest's strides is false", to_string(layouts));
}

/// The first argument that says something and is not listed.
std::string why_arguments(const Manifest& m, const Case& c) {
  std::string reason;
  for_each_scalar(c.operation, [&](const auto& field) {
    if (field.is_original || c.*field.member == field.neutral || !reason.empty()) return;
    if (!has(m.arguments, std::string(field.name)))
      reason = fmt::format("has {}; the manifest's arguments do not list it", field.name);
  });
  return reason;
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
  if (std::string reason = why_arguments(m, c); !reason.empty()) return reason;
  if (c.causal != Causal::none && !has(m.causal, c.causal)) {
    return fmt::format("is causal {}; the manifest's causal lists {}", name_of(c.causal), listed(m.causal));
  }
  if (c.operation == Operation::multihead && m.self_attention_only && !(c.q() == c.k() && c.q() == c.v())) {
    return "has keys or values other than its queries; the manifest's self_attention_only is true";
  }
  return {};
}

}  // namespace attest
