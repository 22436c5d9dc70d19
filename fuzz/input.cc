#include "fuzz/input.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <utility>

#include "core/problem/memory.h"
#include "properties/generators/draw.h"
#include "properties/generators/fill.h"

namespace attest {
namespace {

/// Slots of an attention case; they come first. The flags of the others stand behind those of the layouts.
constexpr std::size_t attention_slots = 4;
constexpr double least_scale = 0x1p-100, largest_scale = 0x1p100;

/// The bytes of an input one after the other; zeros behind the last.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  std::uint64_t number(int width) {
    std::uint64_t value = 0;
    for (int i = 0; i < width; ++i) value |= std::uint64_t{byte()} << (8 * i);
    return value;
  }
  std::uint8_t byte() { return at_ < bytes_.size() ? bytes_[at_++] : std::uint8_t{0}; }
  [[nodiscard]] std::size_t left() const { return bytes_.size() - std::min(at_, bytes_.size()); }
  void skip_to(std::size_t place) { at_ = std::min(place, bytes_.size()); }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

class Writer {
 public:
  void number(std::uint64_t value, int width) {
    for (int i = 0; i < width; ++i) bytes.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  }
  std::vector<std::uint8_t> bytes;
};

/// An extent is three bytes: a kind, of which one in 256 means any number, and the number. So nearly all extents of
/// random bytes are the small ones that find most.
constexpr std::uint8_t any_extent = 255;

std::int32_t read_extent(Reader& reader) {
  const std::uint8_t kind = reader.byte();
  const auto number = static_cast<std::int32_t>(reader.number(2));
  return kind == any_extent ? number : 1 + number % 8;
}
void write_extent(Writer& writer, std::int32_t extent) {
  const bool small = extent >= 1 && extent <= 8;
  writer.number(small ? 0 : any_extent, 1);
  writer.number(static_cast<std::uint64_t>(small ? extent - 1 : std::clamp(extent, 0, 65535)), 2);
}

template <class Kind>
Kind read_kind(Reader& reader) {
  return static_cast<Kind>(reader.byte() % static_cast<unsigned>(Kind::count));
}

/// Both lists in the order of the bytes, so that reading and writing cannot come apart.
auto extents_in(auto& r) {
  return std::array{&r.batch, &r.heads, &r.kv_heads, &r.queries, &r.keys, &r.dk, &r.dv, &r.c_q, &r.c_k, &r.c_v, &r.d_o};
}
auto flags_in(auto& r) {
  return std::array{&r.boolean_mask, &r.mask_per_batch, &r.mask_per_head,    &r.self_attention,
                    &r.biases,       &r.key_value_bias, &r.output_projection};
}
constexpr std::uint64_t drawn_flag = 0x80;

double work_of(const Recipe& r) {
  double product = std::max(r.batch, 1) * static_cast<double>(std::max(r.heads, 1));
  product *= static_cast<double>(std::max(r.queries, 1)) * std::max(r.keys, 1);
  return product * (static_cast<double>(r.dk) + r.dv);
}

/// Multiplications of the projections, and so more than the elements of their weights.
double projections_of(const Recipe& r) {
  if (r.operation != Operation::multihead) return 0;
  const auto rows = static_cast<double>(std::max(r.queries, 1)), keys = static_cast<double>(std::max(r.keys, 1));
  const double of_keys = r.dk * (rows * r.c_q + keys * r.c_k), of_values = r.dv * (keys * r.c_v + rows * r.d_o);
  return static_cast<double>(r.batch) * r.heads * (of_keys + of_values);
}

/// Halves the longest extents until judging the case is cheap enough for a campaign.
void limit_work(Recipe& r) {
  const auto halve = [](std::initializer_list<std::int32_t*> extents) {
    **std::ranges::max_element(extents, {}, [](const std::int32_t* extent) { return *extent; }) /= 2;
  };
  while (work_of(r) > static_cast<double>(most_work)) halve({&r.batch, &r.heads, &r.queries, &r.keys, &r.dk, &r.dv});
  while (projections_of(r) > static_cast<double>(most_projections))
    halve({&r.batch, &r.heads, &r.queries, &r.keys, &r.dk, &r.dv, &r.c_q, &r.c_k, &r.c_v, &r.d_o});
}

/// As decode brings them into range, so that bits have a shape to go to.
void bring_into_range(Recipe& r) {
  for (std::int32_t* const extent : extents_in(r)) *extent = std::clamp(*extent, 1, 512);
}

void make_valid(Input& input) {
  Recipe& r = input.recipe;
  const std::int32_t queries = std::clamp(r.queries, 0, static_cast<std::int32_t>(most_tokens)),
                     keys = std::clamp(r.keys, 0, static_cast<std::int32_t>(most_tokens));
  bring_into_range(r);
  r.queries = queries, r.keys = keys;
  limit_work(r);
  r.kv_heads = std::min(r.kv_heads, r.heads);
  while (r.heads % r.kv_heads != 0) --r.kv_heads;
  r.override_count = 0;
  if (r.causal != Causal::top_left && r.causal != Causal::bottom_right) r.causal = Causal::none;
  if (r.convention != MaskConvention::pre_scale) r.convention = MaskConvention::post_scale;
  limit_arguments(r.arguments);
  if (input.scale) {
    const double scale = std::abs(*input.scale);
    input.scale = scale == scale ? std::clamp(scale, least_scale, largest_scale) : 1.0;
  }
  if (input.changes.size() > most_changes) input.changes.resize(most_changes);
  for (std::size_t i = 0; i < input.raw.size(); ++i) {
    auto& bits = input.raw[i];
    if (bits && i >= attention_slots && r.operation == Operation::attention) bits.reset();
    if (bits && bits->size() > most_raw_bytes) bits->resize(most_raw_bytes);
  }
}

/// NaN and Inf as the largest number of their sign.
void make_finite(Tensor& tensor) {
  const double largest = format_of(tensor.dtype()).largest;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    const double value = tensor[i];
    if (!std::isfinite(value)) tensor.set(i, std::signbit(value) ? -largest : largest);
  }
}

/// Bits of a mask: a boolean byte is even or odd; NaN and +Inf hide as -Inf does, where the dtype has one.
void make_mask(Tensor& tensor) {
  if (tensor.dtype() == DType::boolean) {
    for (std::byte& byte : tensor.bytes()) byte &= std::byte{1};
    return;
  }
  const double hides =
      tensor.dtype() == DType::f8_e4m3 ? -format_of(tensor.dtype()).largest : -std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    if (!std::isfinite(tensor[i])) tensor.set(i, hides);
}

void fill_from(Tensor& tensor, const std::vector<std::byte>& bits) {
  const std::span<std::byte> to = tensor.bytes();
  if (bits.empty()) std::ranges::fill(to, std::byte{0});
  if (bits.empty()) return;
  for (std::size_t at = 0; at < to.size(); at += bits.size())
    std::memcpy(to.data() + at, bits.data(), std::min(bits.size(), to.size() - at));
}

/// q, k and v of a case whose extents stand in the recipe, all from bits: the recipe's fills are not needed.
Case case_of_bits(const Input& input) {
  const Recipe& r = input.recipe;
  Case c;
  c.scale = scale_of(r);
  c.causal = r.causal;
  c.mask_convention = r.convention;
  set_later_arguments(c, r.arguments);
  c[Slot::q] = Tensor(r.dtype, {r.batch, r.heads, r.queries, r.dk});
  c[Slot::k] = Tensor(r.dtype, {r.batch, r.kv_heads, r.keys, r.dk});
  c[Slot::v] = Tensor(r.dtype, {r.batch, r.kv_heads, r.keys, r.dv});
  if (!input.raw[static_cast<std::size_t>(Slot::mask)]) c[Slot::mask] = filled_mask(r);
  fill_sequences(r, c);
  set_layouts(c, r.layouts);
  return c;
}

/// Room for the bits of a mask, whatever mask the recipe has.
Tensor empty_mask(const Recipe& r, const Case& c) {
  const bool attention = c.operation == Operation::attention;
  const Shape &q = c.q().shape(), &k = c.k().shape();
  const std::int64_t heads = attention ? q[1] : c.heads;
  return {r.boolean_mask ? DType::boolean : r.dtype,
          {r.mask_per_batch ? q[0] : 1, r.mask_per_head ? heads : 1, q[attention ? 2 : 1], k[attention ? 2 : 1]}};
}

void put_bits(const Input& input, Case& c) {
  for (std::size_t i = 0; i < input.raw.size(); ++i) {
    const auto& bits = input.raw[i];
    if (!bits) continue;
    const auto slot = static_cast<Slot>(i);
    if (slot == Slot::mask) {
      c[slot] = empty_mask(input.recipe, c);
      fill_from(c[slot], *bits);
      make_mask(c[slot]);
    } else if (c[slot].present()) {
      fill_from(c[slot], *bits);
      make_finite(c[slot]);
    }
  }
  const bool tied = c.operation == Operation::multihead && input.recipe.self_attention;
  if (tied && (input.raw[0] || input.raw[1] || input.raw[2])) c[Slot::k] = c[Slot::v] = c.q();
}

void apply(const ElementChange& change, Case& c) {
  Tensor& tensor = c[static_cast<Slot>(static_cast<unsigned>(change.slot) % 3)];
  if (tensor.elements() == 0) return;
  const double largest = format_of(tensor.dtype()).largest;
  const double value = change.value == change.value ? std::clamp(change.value, -largest, largest) : 0.0;
  tensor.set(static_cast<std::int64_t>(change.index) % tensor.elements(), value);
}

/// Those that are too large come out too large.
std::int32_t extent(std::int64_t value) {
  return static_cast<std::int32_t>(std::min<std::int64_t>(value, std::numeric_limits<std::int32_t>::max()));
}

/// The extents of an attention case, without regard to what an input may hold.
void read_extents_of_attention(const Case& c, Recipe& r) {
  const Shape &q = c.q().shape(), &v = c.v().shape();
  r.batch = extent(q[0]), r.heads = extent(q[1]), r.kv_heads = extent(v[1]);
  r.queries = extent(q[2]), r.keys = extent(v[2]);
  r.dk = extent(q[3]), r.dv = extent(v[3]);
}

/// The same of a multihead case, and which of its tensors there are. False where no recipe has just those.
bool read_extents_of_multihead(const Case& c, Recipe& r) {
  const Shape &q = c.q().shape(), &k = c.k().shape();
  r.batch = extent(q[0]), r.queries = extent(q[1]), r.keys = extent(k[1]);
  r.c_q = extent(q[2]), r.c_k = extent(k[2]), r.c_v = extent(c.v().shape()[2]);
  r.heads = c.heads;
  r.dk = extent(c[Slot::w_q].shape()[1] / c.heads), r.dv = extent(c[Slot::w_v].shape()[1] / c.heads);
  r.output_projection = c[Slot::w_o].present();
  if (r.output_projection) r.d_o = extent(c[Slot::w_o].shape()[1]);
  const auto all_or_none = [&](std::initializer_list<Slot> slots, bool& there) {
    there = c[*slots.begin()].present();
    return std::ranges::all_of(slots, [&](Slot slot) { return c[slot].present() == there; });
  };
  r.self_attention = c.q() == c.k() && c.q() == c.v();
  return all_or_none({Slot::b_q, Slot::b_k, Slot::b_v, Slot::b_o}, r.biases) &&
         all_or_none({Slot::bias_k, Slot::bias_v}, r.key_value_bias);
}

bool all_finite(const Tensor& tensor) {
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    if (!std::isfinite(tensor[i])) return false;
  return true;
}

}  // namespace

bool ElementChange::operator==(const ElementChange& other) const {
  return slot == other.slot && index == other.index &&
         std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(other.value);
}

/// Arguments of variants stand at the end, and as what sets them apart from neutral, so that bytes of a version that
/// had fewer of them mean what they meant.
template <class Value>
std::uint64_t neutral_bits(const ScalarField<Value>& field) {
  return std::bit_cast<std::uint64_t>(static_cast<double>(field.neutral));
}

Input parse_input(std::span<const std::uint8_t> bytes, DType dtype, Operation operation) {
  Reader reader(bytes);
  Input input;
  Recipe& r = input.recipe;
  r.dtype = dtype;
  r.operation = operation;
  const std::uint64_t flags = reader.byte();
  const auto flag_fields = flags_in(r);
  for (std::size_t i = 0; i < flag_fields.size(); ++i) *flag_fields[i] = (flags >> i & 1) != 0;
  input.drawn = (flags & drawn_flag) != 0;
  const std::uint64_t present = reader.byte();
  const std::size_t changes = reader.byte() % (most_changes + 1);
  r.scores = read_kind<ScoreKind>(reader);
  r.values = read_kind<ValueKind>(reader);
  r.matrices = read_kind<MatrixKind>(reader);
  r.mask = read_kind<MaskKind>(reader);
  r.scale = read_kind<ScaleKind>(reader);
  r.causal = static_cast<Causal>(reader.byte() % 3);
  r.convention = static_cast<MaskConvention>(reader.byte() % 2);
  for (std::int32_t* const extent : extents_in(r)) *extent = read_extent(reader);
  r.seed = reader.number(8);
  const double scale = std::bit_cast<double>(reader.number(8));
  if ((present & 0x10) != 0) input.scale = scale;
  // Of q, k, v, mask, out and lse, where a bit says so: most cases are row-major.
  const bool laid_out = (present & 0x20) != 0;
  for (std::size_t i = 0; i < attention_slots; ++i) r.layouts.inputs[i] = read_kind<MemoryLayout>(reader);
  r.layouts.out = read_kind<MemoryLayout>(reader);
  r.layouts.lse = read_kind<MemoryLayout>(reader);
  for (MemoryLayout* const layout : {&r.layouts.out, &r.layouts.lse})
    if (!is_for_outputs(*layout)) *layout = MemoryLayout::row_major;
  if (!laid_out) r.layouts = {};
  const std::uint64_t raw = (present & 0xf) | reader.number(2) << attention_slots;
  for (std::size_t i = attention_slots; i < original_slots; ++i) {
    const auto layout = read_kind<MemoryLayout>(reader);
    if (laid_out && operation == Operation::multihead) r.layouts.inputs[i] = layout;
  }
  reader.skip_to(input_header_bytes);
  for (std::size_t i = 0; i < changes; ++i) {
    ElementChange change;
    change.slot = static_cast<Slot>(reader.byte() % 3);
    change.index = static_cast<std::uint32_t>(reader.number(4));
    change.value = std::bit_cast<double>(reader.number(8));
    input.changes.push_back(change);
  }
  for (std::size_t i = 0; i < (operation == Operation::attention ? attention_slots : input.raw.size()); ++i) {
    if ((raw >> i & 1) == 0) continue;
    const std::size_t said = reader.number(2) % (most_raw_bytes + 1);
    std::vector<std::byte>& bits = input.raw[i].emplace(std::min(said, reader.left()));
    for (std::byte& byte : bits) byte = std::byte{reader.byte()};
  }
  for_each_later_argument(r.arguments, [&](const auto& field, double& value) {
    value = std::bit_cast<double>(reader.number(8) ^ neutral_bits(field));
  });
  r.lengths = read_kind<LengthKind>(reader);
  r.left_pad = reader.byte() % 2 != 0;
  r.sinks = reader.byte() % 2 != 0;
  r.dropout = reader.byte() % 2 != 0;
  r.slopes = reader.byte() % 2 != 0;
  r.descale = read_kind<FactorKind>(reader);
  make_valid(input);
  return input;
}

std::vector<std::uint8_t> bytes_of(const Input& given) {
  Input input = given;
  make_valid(input);
  const Recipe& r = input.recipe;
  Writer writer;
  std::uint64_t flags = input.drawn ? drawn_flag : 0;
  const auto flag_fields = flags_in(r);
  for (std::size_t i = 0; i < flag_fields.size(); ++i) flags |= std::uint64_t{*flag_fields[i]} << i;
  writer.number(flags, 1);
  std::uint64_t raw = 0;
  for (std::size_t i = 0; i < input.raw.size(); ++i) raw |= std::uint64_t{input.raw[i].has_value()} << i;
  std::uint64_t present = raw & 0xf;
  if (input.scale) present |= 0x10;
  if (r.layouts != Layouts()) present |= 0x20;
  writer.number(present, 1);
  writer.number(input.changes.size(), 1);
  for (const unsigned kind :
       {static_cast<unsigned>(r.scores), static_cast<unsigned>(r.values), static_cast<unsigned>(r.matrices),
        static_cast<unsigned>(r.mask), static_cast<unsigned>(r.scale), static_cast<unsigned>(r.causal),
        static_cast<unsigned>(r.convention)}) {
    writer.number(kind, 1);
  }
  for (const std::int32_t* const extent : extents_in(r)) write_extent(writer, *extent);
  writer.number(r.seed, 8);
  writer.number(std::bit_cast<std::uint64_t>(input.scale.value_or(0)), 8);
  for (std::size_t i = 0; i < attention_slots; ++i) writer.number(static_cast<unsigned>(r.layouts.inputs[i]), 1);
  writer.number(static_cast<unsigned>(r.layouts.out), 1);
  writer.number(static_cast<unsigned>(r.layouts.lse), 1);
  writer.number(raw >> attention_slots, 2);
  for (std::size_t i = attention_slots; i < original_slots; ++i) {
    const bool there = r.operation == Operation::multihead;
    writer.number(there ? static_cast<unsigned>(r.layouts.inputs[i]) : 0, 1);
  }
  writer.bytes.resize(input_header_bytes);
  for (const ElementChange& change : input.changes) {
    writer.number(static_cast<unsigned>(change.slot) % 3, 1);
    writer.number(change.index, 4);
    writer.number(std::bit_cast<std::uint64_t>(change.value), 8);
  }
  for (const auto& bits : input.raw) {
    if (!bits) continue;
    writer.number(bits->size(), 2);
    for (const std::byte byte : *bits) writer.bytes.push_back(std::to_integer<std::uint8_t>(byte));
  }
  // Those of variants that are tensors, up to the last that says something.
  const std::array kinds{static_cast<unsigned>(r.lengths),
                         r.left_pad ? 1U : 0U,
                         r.sinks ? 1U : 0U,
                         r.dropout ? 1U : 0U,
                         r.slopes ? 1U : 0U,
                         static_cast<unsigned>(r.descale)};
  const auto last = std::find_if(kinds.rbegin(), kinds.rend(), [](unsigned kind) { return kind != 0; });
  bool neutral = last == kinds.rend();
  for_each_later_argument(input.recipe.arguments, [&](const auto& field, const double& value) {
    neutral = neutral && value == static_cast<double>(field.neutral);
  });
  for_each_later_argument(input.recipe.arguments, [&](const auto& field, double& value) {
    if (!neutral) writer.number(std::bit_cast<std::uint64_t>(value) ^ neutral_bits(field), 8);
  });
  std::for_each(kinds.begin(), last.base(), [&](unsigned kind) { writer.number(kind, 1); });
  return std::move(writer.bytes);
}

std::int64_t work_of(const Case& c) {
  const Shape &q = c.q().shape(), &k = c.k().shape(), &out = c.out_shape();
  const auto at_least_one = [](std::int64_t extent) { return std::max<std::int64_t>(extent, 1); };
  if (c.operation == Operation::attention)
    return q[0] * q[1] * at_least_one(q[2]) * at_least_one(k[2]) * (q[3] + out[3]);
  return q[0] * c.heads * at_least_one(q[1]) * at_least_one(k[1]) * (q[2] + out[2]);
}

Case case_of(const Input& given, const Property& property) {
  if (given.drawn) {
    Draw draw(given.recipe.dtype, given.recipe.seed);
    Case c = property.given(draw);
    for (const ElementChange& change : given.changes) apply(change, c);
    return c;
  }
  Input input = given;
  make_valid(input);
  const bool attention = input.recipe.operation == Operation::attention;
  Case c = attention && input.raw[0] && input.raw[1] && input.raw[2] ? case_of_bits(input) : decode(input.recipe);
  if (input.scale) c.scale = *input.scale;
  put_bits(input, c);
  for (const ElementChange& change : input.changes) apply(change, c);
  if (property.backward != Backward::none && attention) {
    input.recipe.loss = drawn_loss(input.recipe.seed);
    input.recipe.loss_by_lse = property.holds_under(by_lse) && draws_loss_by_lse(input.recipe.seed);
    fill_loss(input.recipe, c);
  }
  return c;
}

/// In q's format, from which the projection makes the manifest's of k and v again; nothing where that loses anything.
std::optional<Tensor> in_format_of(DType q, const Tensor& tensor) {
  if (tensor.dtype() == q || tensor.dtype() == DType::boolean) return tensor;
  Tensor own(q, tensor.shape());
  for (std::int64_t e = 0; e < own.elements(); ++e) {
    own.set(e, tensor[e]);
    if (own[e] != tensor[e]) return std::nullopt;
  }
  return own;
}

std::optional<Input> input_of(const Case& c) {
  if (!(c.scale >= least_scale && c.scale <= largest_scale)) return std::nullopt;
  Input input;
  Recipe& r = input.recipe;
  r.operation = c.operation;
  r.dtype = c.dtype();
  if (c.operation == Operation::attention)
    read_extents_of_attention(c, r);
  else if (!read_extents_of_multihead(c, r))
    return std::nullopt;
  const Recipe exact = r;
  make_valid(input);
  const auto kept = extents_in(r);
  const auto wanted = extents_in(exact);
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (*kept[i] != *wanted[i]) return std::nullopt;
  r.causal = c.causal;
  r.convention = c.mask_convention;
  r.arguments = argument_values(c);
  r.layouts = layouts_of(c);
  input.scale = c.scale;
  for (std::size_t i = 0; i < input.raw.size(); ++i) {
    const auto slot = static_cast<Slot>(i);
    const Tensor& tensor = c[slot];
    // Whose lengths are drawn from its seed alone.
    if (tensor.present() && i >= original_slots) return std::nullopt;
    if (!tensor.present() || (r.self_attention && (slot == Slot::k || slot == Slot::v))) continue;
    const std::optional<Tensor> own = slot == Slot::mask ? tensor : in_format_of(r.dtype, tensor);
    if (!own) return std::nullopt;
    const std::span<const std::byte> bytes = own->bytes();
    if (bytes.size() > most_raw_bytes) return std::nullopt;
    if (slot != Slot::mask && !all_finite(tensor)) return std::nullopt;
    input.raw[i].emplace(bytes.begin(), bytes.end());
  }
  if (const Tensor& mask = c.mask(); mask.present()) {
    if (mask.dtype() != DType::boolean && mask.dtype() != r.dtype) return std::nullopt;
    r.boolean_mask = mask.dtype() == DType::boolean;
    r.mask_per_batch = mask.shape()[0] == r.batch && r.batch > 1;
    r.mask_per_head = mask.shape()[1] == r.heads && r.heads > 1;
  }
  return input;
}

}  // namespace attest
