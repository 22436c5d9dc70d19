#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/problem/case.h"
#include "core/problem/case_file.h"
#include "core/problem/descale.h"
#include "core/problem/edge.h"
#include "core/problem/fields.h"
#include "core/problem/kv_cache.h"
#include "core/problem/memory.h"
#include "core/problem/sight.h"
#include "core/support/names.h"
#include "core/support/refuse.h"

namespace attest {
namespace {

/// Limits that no real problem meets, so that a small file cannot ask for endless loops over empty tensors or for an
/// output that fills the machine.
constexpr std::int64_t most_extent = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t most_heads = std::int64_t{1} << 24;  // batch times heads
constexpr std::int64_t most_out = std::int64_t{1} << 32;    // elements

/// First flat index >= `from` whose bits have all of `pattern` set; -1: none.
template <class Bits>
std::int64_t first_with(const Tensor& t, Bits pattern, std::int64_t from) {
  const std::byte* bytes = t.bytes().data();
  const auto count = t.elements();
  for (std::int64_t i = from; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, bytes + static_cast<std::size_t>(i) * sizeof(Bits), sizeof(Bits));
    if ((bits & pattern) == pattern) return i;
  }
  return -1;
}

/// First flat index >= `from` of a NaN or an infinity: an exponent field of ones (e4m3fn: the one NaN pattern). -1:
/// none.
std::int64_t first_non_finite(const Tensor& t, std::int64_t from) {
  switch (t.dtype()) {
    case DType::f64:
      return first_with<std::uint64_t>(t, 0x7ff0000000000000U, from);
    case DType::f32:
      return first_with<std::uint32_t>(t, 0x7f800000U, from);
    case DType::f16:
      return first_with<std::uint16_t>(t, 0x7c00U, from);
    case DType::bf16:
      return first_with<std::uint16_t>(t, 0x7f80U, from);
    case DType::f8_e4m3:
      return first_with<std::uint8_t>(t, 0x7fU, from);
    case DType::f8_e5m2:
      return first_with<std::uint8_t>(t, 0x7cU, from);
    case DType::boolean:
    case DType::i32:
    case DType::i8:
      return -1;
  }
  return -1;
}

/// "q, k and v".
std::string listed(std::vector<std::string_view> names) {
  const std::string_view last = names.back();
  names.pop_back();
  return fmt::format("{} and {}", fmt::join(names, ", "), last);
}

/// The names of the tensors that an operation cannot do without.
std::string needed(Operation operation) {
  std::vector<std::string_view> names;
  for (const TensorField& field : tensor_fields)
    if (field.axes(operation).required) names.push_back(field.name());
  return listed(std::move(names));
}

/// A tensor has its axes: as many as it must, none too long, and none but M and N empty.
void validate_axes(const Problem& c, const TensorField& field) {
  const Axes& axes = field.axes(c.operation);
  const Shape& shape = c[field.slot].shape();
  if (shape.rank() != axes.rank) {
    refuse("{} has shape {}; {} needs {} axes, {}", field.name(), shape.to_string(), name_of(c.operation), axes.rank,
           form_of(axes));
  }
  for (int i = 0; i < axes.rank; ++i) {
    if (shape[i] > most_extent) {
      refuse("{} has shape {}; an axis is at most {} long", field.name(), shape.to_string(), most_extent);
    }
    if (shape[i] < 1 && axes[i] != Axis::queries && axes[i] != Axis::keys) {
      refuse("{} has shape {}: {} is {}; it must be at least 1", field.name(), shape.to_string(), name_of(axes[i]),
             shape[i]);
    }
  }
}

/// Its axes are as long as those of the tensors before it.
void validate_shape(const Problem& c, const TensorField& field, const AxisExtents& extents) {
  const Axes& axes = field.axes(c.operation);
  const Shape& shape = c[field.slot].shape();
  bool fits = true;
  std::string wanted;
  for (int i = 0; i < axes.rank; ++i) {
    const std::int64_t extent = extents[static_cast<std::size_t>(axes[i])];
    const bool is_shared = i < axes.shared;
    fits &= shape[i] == extent || (is_shared && shape[i] == 1);
    wanted += fmt::format("{}{}{}", i == 0 ? "[" : ", ", extent, is_shared ? " or 1" : "");
  }
  if (!fits) refuse("{} has shape {}; it must be {} = {}]", field.name(), shape.to_string(), form_of(axes), wanted);
}

void validate_tensors(const Problem& c) {
  if (c.operation == Operation::multihead && c.heads < 1) refuse("heads is {}; it must be at least 1", c.heads);
  for (const TensorField& field : tensor_fields) {
    const Axes& axes = field.axes(c.operation);
    const bool is_present = c[field.slot].present();
    if (is_present && axes.rank == 0) {
      const bool attention = c.operation == Operation::attention;
      refuse("{} is present; {} does not take it (operation {} does)", field.name(), name_of(c.operation),
             name_of(attention ? Operation::multihead : Operation::attention));
    }
    if (!is_present && axes.required)
      refuse("{} is missing; {} needs {}", field.name(), name_of(c.operation), needed(c.operation));
    if (is_present) validate_axes(c, field);
  }
}

void validate_shapes(const Problem& c) {
  const AxisExtents extents = axis_extents(c);
  for (const TensorField& field : tensor_fields)
    if (c[field.slot].present()) validate_shape(c, field, extents);
}

/// The heads of keys and values divide those of queries; the columns of a projection are equal shares of the heads.
void validate_heads(const Problem& c) {
  if (c.operation == Operation::attention) {
    const std::int64_t heads = c.q().shape()[1], kv_heads = c.k().shape()[1];
    if (heads % kv_heads != 0)
      refuse("q has {} heads and k has {}; the heads of k must divide those of q", heads, kv_heads);
    return;
  }
  for (const Slot slot : {Slot::w_q, Slot::w_v}) {
    const std::int64_t columns = c[slot].shape()[1];
    if (columns % c.heads == 0) continue;
    refuse("{} has {} columns, which {} heads do not divide; head h owns an equal share of them", name_of(slot),
           columns, c.heads);
  }
}

void validate_appended_row(const Problem& c) {
  if (c[Slot::bias_k].present() == c[Slot::bias_v].present()) return;
  refuse("{} is present without {}; the appended row needs both", c[Slot::bias_k].present() ? "bias_k" : "bias_v",
         c[Slot::bias_k].present() ? "bias_v" : "bias_k");
}

void validate_scale(const Problem& c) {
  if (std::isfinite(c.scale) && c.scale > 0) return;
  refuse("scale is {}; it must be finite and greater than 0", c.scale);
}

/// Arguments of later versions; those of the first have rules of their own.
void validate_arguments(const Problem& c) {
  for_each_scalar(c.operation, [&]<class Value>(const ScalarField<Value>& field) {
    if constexpr (!std::is_enum_v<Value>) {
      const Value value = c.*field.member;
      if (field.is_original() || value == field.neutral || (value >= field.range.least && value <= field.range.most))
        return;
      refuse("{} is {}; it must be {}, or from {} to {}", field.name, value, field.neutral, field.range.least,
             field.range.most);
    }
  });
}

void validate_alignment(const Problem& c) {
  std::vector<std::string_view> all, asked;
  for (const Variant& variant : positional_variants) {
    all.push_back(variant.words);
    if (has_variant(c, variant.name)) asked.push_back(variant.words);
  }
  if (asked.empty() && c.alignment != Causal::none)
    refuse("alignment is {} without any of {}; it says where their positions count from", name_of(c.alignment),
           fmt::join(all, ", "));
  if (!asked.empty() && c.alignment == Causal::none)
    refuse("there are {} without an alignment; it is \"top-left\" or \"bottom-right\"", asked.front());
  if (!asked.empty() && c.causal != Causal::none && c.alignment != c.causal)
    refuse("alignment is {} and causal {}; {} count positions as the causal form does", name_of(c.alignment),
           name_of(c.causal), asked.front());
}

void validate_convention(const Problem& c) {
  const bool additive = c.mask().present() && c.mask().dtype() != DType::boolean;
  if (!additive || c.mask_convention == MaskConvention::post_scale) return;
  if (c[Slot::alibi_slopes].present())
    refuse("alibi_slopes is present beside a pre-scale mask; slopes and masks are added after the scale");
  if (c.softcap == 0) return;
  refuse("softcap is {} beside a pre-scale mask; a cap is of the scaled product alone, and masks are added after it",
         c.softcap);
}

void validate_dropout(const Problem& c) {
  const bool drops = has_variant(c, dropout_variant.name);
  if (c.dropout_seed != 0 && (!drops || c[Slot::keep].present()))
    refuse("dropout_seed is {} {}; it says what a kernel with a dropout_p and without keep is to draw", c.dropout_seed,
           drops ? "beside keep" : "without a dropout_p");
  if (drops && is_in_cache(c))
    refuse("there is dropout in a problem whose keys lie in a cache; nothing is dropped where a model is asked");
}

void validate_loss(const Problem& c) {
  if (c[Slot::d_lse].present() && !asks_for_gradients(c))
    refuse("there is d_lse without d_out; a loss has a gradient by the output, if of zeros");
}

void validate_size(const Problem& c) {
  const Shape& q = c.q().shape();
  const std::int64_t heads = c.operation == Operation::attention ? q[1] : c.heads;
  if (q[0] > most_heads / heads) refuse("batch {} times heads {} is more than {}", q[0], heads, most_heads);
  const Shape out = c.out_shape();
  std::int64_t elements = 1;
  for (int axis = 0; axis < out.rank(); ++axis) {
    // Each factor is below 2^31 and the product so far at most 2^32, so that this cannot overflow.
    elements *= out[axis];
    if (elements > most_out) refuse("the output {} has more than {} elements", out.to_string(), most_out);
  }
}

/// One refuses what is not whole numbers, or not from 0 to `most`, the length of the axis that they count; and of
/// starts what does not begin at 0 or decreases.
void validate_counts(const Tensor& t, const TensorField& field, std::int64_t most) {
  if (t.dtype() != DType::i32) refuse("{} is {}; it must be i32", field.name(), name_of(t.dtype()));
  for (std::int64_t e = 0; e < t.elements(); ++e) {
    const auto value = static_cast<std::int64_t>(t[e]);
    if (value < 0 || value > most)
      refuse("{} holds {} at {}; it must be from 0 to {} = {}", field.name(), value, index_text(e, t.shape()),
             name_of(field.counted), most);
    if (field.content != Content::start) continue;
    if (e == 0 && value != 0) refuse("{} begins with {}; the first sequence begins at 0", field.name(), value);
    if (e > 0 && value < static_cast<std::int64_t>(t[e - 1]))
      refuse("{} holds {} at {} after {}; no sequence ends before it begins", field.name(), value,
             index_text(e, t.shape()), static_cast<std::int64_t>(t[e - 1]));
  }
}

void validate_packed(const Problem& c) {
  const Tensor &q = c[Slot::q_starts], &kv = c[Slot::kv_starts];
  if (!q.present() && !kv.present()) return;
  if (!q.present() || !kv.present())
    refuse("{} is present without {}; a packed batch has both", name_of(q.present() ? Slot::q_starts : Slot::kv_starts),
           name_of(q.present() ? Slot::kv_starts : Slot::q_starts));
  if (q.elements() < 2) refuse("q_starts has 1 element; of S sequences it has S + 1, and one is the least");
  if (c.q().shape()[0] != 1)
    refuse("q has a batch of {} beside q_starts; packed sequences stand one after another in a batch of 1",
           c.q().shape()[0]);
  for (const Slot slot : {Slot::q_lengths, Slot::kv_lengths, Slot::left_pad})
    if (c[slot].present())
      refuse("{} is present beside q_starts; packed sequences are as long as their starts say", name_of(slot));
}

/// A page table goes with whole pages, lengths and no other cache; what it names where keys stand is a page.
void validate_cache(const Problem& c) {
  const Tensor &table = c[Slot::page_table], &own = c[Slot::page_table_v], &index = c[Slot::cache_index];
  for (const Slot slot : {Slot::k_new, Slot::v_new})
    if (c[slot].present()) refuse("{} is present; a problem has its new keys among the others", name_of(slot));
  if (own.present() && !table.present()) refuse("page_table_v is present without page_table; it is that of v alone");
  if (table.present() && index.present())
    refuse("cache_index is present beside page_table; pages are named by the table alone");
  if ((table.present() || index.present()) && c[Slot::q_starts].present())
    refuse("{} is present beside q_starts; packed keys lie one after another",
           name_of(table.present() ? Slot::page_table : Slot::cache_index));
  for (const Slot slot : {Slot::page_table, Slot::page_table_v, Slot::cache_index})
    if (c[slot].present() && c[slot].dtype() != DType::i32)
      refuse("{} is {}; it must be i32", name_of(slot), name_of(c[slot].dtype()));
  if (table.present() && !c[Slot::kv_lengths].present())
    refuse("page_table is present without kv_lengths, which say how many of its keys there are");
  if (table.present() && (keys_of(c) == 0 || keys_of(c) % table.shape()[1] != 0))
    refuse("page_table has {} columns and there is room for {} keys; a page has as many as any other, at least 1",
           table.shape()[1], keys_of(c));
  std::set<double> taken;
  for (std::int64_t b = 0; b < index.elements(); ++b)
    if (index[b] < 0 || !taken.insert(index[b]).second)
      refuse("cache_index holds {} at [{}]; rows count from 0, and two entries of a batch have none together", index[b],
             b);
}

/// After the lengths.
void validate_append(const Problem& c) {
  if (c.append == 0) return;
  if (c.append < 0 || c.operation != Operation::attention || !c[Slot::kv_lengths].present() ||
      c[Slot::q_starts].present())
    refuse("append is {}; attention with kv_lengths alone has new keys, from 1 on", c.append);
  if (const std::int64_t most = most_append(c); c.append > most)
    refuse("append is {} and the fewest keys of an entry are {}; new keys are among those that kv_lengths counts",
           c.append, most);
}

/// After the lengths.
void validate_pages(const Problem& c) {
  for (const Slot slot : {Slot::page_table, Slot::page_table_v}) {
    const Tensor& table = c[slot];
    if (!table.present()) continue;
    const std::int64_t columns = table.shape()[1];
    for (std::int64_t b = 0; b < batch_of(c); ++b)
      for (std::int64_t column = 0; column < columns_needed(c, b); ++column)
        if (table[b * columns + column] < 0)
          refuse("{} holds {} at [{}, {}]; pages count from 0", name_of(slot), table[b * columns + column], b, column);
  }
}

/// After the numbers themselves: no sequence begins behind its end.
void validate_left_pad(const Problem& c) {
  const Tensor &pad = c[Slot::left_pad], &lengths = c[Slot::kv_lengths];
  if (!pad.present() || !lengths.present()) return;
  for (std::int64_t b = 0; b < pad.elements(); ++b)
    if (pad[b] > lengths[b])
      refuse("left_pad holds {} at [{}] and kv_lengths {}; no more keys are padding than there are", pad[b], b,
             lengths[b]);
}

/// One refuses bytes of a bool tensor that are neither 0 nor 1.
void validate_bytes(std::string_view name, const Tensor& t, std::string_view meaning) {
  for (std::int64_t i = 0; i < t.elements(); ++i) {
    const int byte = std::to_integer<int>(t.bytes()[static_cast<std::size_t>(i)]);
    if (byte > 1) refuse("{} holds the byte {} at {}; {}", name, byte, index_text(i, t.shape()), meaning);
  }
}

void validate_mask(const Tensor& mask) {
  if (mask.dtype() != DType::boolean && !is_floating(mask.dtype()))
    refuse("mask is {}; it is bool or of a floating dtype", name_of(mask.dtype()));
  if (mask.dtype() == DType::boolean) return validate_bytes("mask", mask, "1 shows a key and 0 hides it");
  for (std::int64_t i = first_non_finite(mask, 0); i >= 0; i = first_non_finite(mask, i + 1)) {
    if (mask[i] == -std::numeric_limits<double>::infinity()) continue;
    refuse("mask holds {} at {}; an entry is finite or -inf", mask[i], index_text(i, mask.shape()));
  }
}

void validate_logit(const TensorField& field, const Tensor& t) {
  if (!is_floating(t.dtype())) refuse("{} is {}; it must be of a floating dtype", field.name(), name_of(t.dtype()));
  for (std::int64_t i = first_non_finite(t, 0); i >= 0; i = first_non_finite(t, i + 1)) {
    if (t[i] == -std::numeric_limits<double>::infinity()) continue;
    refuse("{} holds {} at {}; it is finite, or -inf where there is none", field.name(), t[i],
           index_text(i, t.shape()));
  }
}

void validate_factors(const TensorField& field, const Tensor& t) {
  for (std::int64_t i = 0; i < t.elements(); ++i)
    if (!(t[i] > 0) || std::isinf(t[i]))
      refuse("{} holds {} at {}; a factor is finite and greater than 0", field.name(), t[i], index_text(i, t.shape()));
}

/// After the numbers themselves: products with a factor are exact in a double.
void validate_descale(const Problem& c) {
  for (const Slot tensor : {Slot::q, Slot::k, Slot::v}) {
    const Tensor& factors = c[descale_of(tensor)];
    if (!factors.present() || c[tensor].dtype() != DType::f64) continue;
    for (std::int64_t e = 0; e < factors.elements(); ++e)
      if (int exponent = 0; std::frexp(factors[e], &exponent) != 0.5)
        refuse("{} holds {} at {} and {} is f64, beside which a factor is a power of two", name_of(descale_of(tensor)),
               factors[e], index_text(e, factors.shape()), name_of(tensor));
  }
  const bool of_keys = c[Slot::k_descale].present() || c[Slot::v_descale].present();
  if (c.q_descale_block != 0 && !c[Slot::q_descale].present())
    refuse("q_descale_block is {} without q_descale; it says how many rows have a factor together", c.q_descale_block);
  if (c.kv_descale_block != 0 && !of_keys)
    refuse("kv_descale_block is {} without k_descale or v_descale; it says how many keys have a factor together",
           c.kv_descale_block);
}

/// dtypes, and NaN or Inf among the elements.
void validate_elements(const Case& c) {
  if (!is_floating(c.dtype())) refuse("q is {}; it must be of a floating dtype", name_of(c.dtype()));
  const AxisExtents extents = axis_extents(c);
  const bool non_finite_stated = c.provenance.non_finite == "yes";
  for (const TensorField& field : tensor_fields) {
    const Tensor& t = c[field.slot];
    if (!t.present()) continue;
    if (field.content == Content::mask) {
      validate_mask(t);
      continue;
    }
    if (field.content == Content::choice) {
      if (t.dtype() != DType::boolean) refuse("{} is {}; it must be bool", field.name(), name_of(t.dtype()));
      validate_bytes(field.name(), t, "1 keeps a weight and 0 drops it");
      continue;
    }
    if (field.content == Content::place) continue;
    const bool is_single = field.content == Content::slope || field.content == Content::factor;
    if (is_single && t.dtype() != DType::f32) refuse("{} is {}; it must be f32", field.name(), name_of(t.dtype()));
    if (field.content == Content::factor) {
      validate_factors(field, t);
      continue;
    }
    if (field.content == Content::logit) {
      validate_logit(field, t);
      continue;
    }
    if (counts(field.content)) {
      validate_counts(t, field, extents[static_cast<std::size_t>(field.counted)]);
      continue;
    }
    const bool has_own = c.operation == Operation::attention &&
                         (field.slot == Slot::k || field.slot == Slot::v || field.content == Content::slope);
    if (has_own && !is_of_keys(t.dtype()))
      refuse("{} is {}; it must be of a floating dtype, or i8", field.name(), name_of(t.dtype()));
    if (!has_own && t.dtype() != c.dtype()) {
      refuse("{} is {} and q is {}; all tensors have one dtype, but a mask, and k and v of an attention problem",
             field.name(), name_of(t.dtype()), name_of(c.dtype()));
    }
    const bool is_input = field.content == Content::input;
    if (non_finite_stated && is_input) continue;
    const std::int64_t found = first_non_finite(t, 0);
    if (found < 0) continue;
    refuse("{} holds {} at {}; {}", field.name(), t[found], index_text(found, t.shape()),
           is_input ? "inputs are finite unless the metadata says \"non_finite\": \"yes\""
                    : "weights, biases and slopes are finite");
  }
}

void validate_provenance(const Case& c) {
  for (const std::string_view key : case_keys(c.operation)) {
    if (c.provenance.others.contains(std::string(key)))
      refuse("metadata holds \"{}\", which the case itself states", key);
  }
  static_cast<void>(layouts_of(c));
  if (const auto& edge = c.provenance.edge; edge && !named<Edge>(*edge))
    refuse("metadata \"edge\" is {}; it must be \"none\", \"front\" or \"behind\"", in_quotes(*edge));
}

}  // namespace

void validate(const Case& c) {
  validate_tensors(c);
  // First, as a wrong number of heads makes a mask look wrong too.
  validate_heads(c);
  validate_shapes(c);
  validate_appended_row(c);
  validate_packed(c);
  validate_cache(c);
  validate_size(c);
  validate_scale(c);
  validate_arguments(c);
  validate_alignment(c);
  validate_convention(c);
  validate_dropout(c);
  validate_loss(c);
  validate_elements(c);
  validate_descale(c);
  validate_left_pad(c);
  validate_append(c);
  validate_pages(c);
  validate_provenance(c);
}

}  // namespace attest
