#include "core/call/guarded_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <mutex>
#include <random>
#include <span>
#include <string_view>
#include <utility>

#include "core/call/edge_faults.h"
#include "core/problem/kv_cache.h"

namespace attest {
namespace {

constexpr std::byte poison{0xff};

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

std::size_t rounded_up(std::size_t value, std::size_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

std::size_t element_size(const attest_tensor& view) {
  return size_of(static_cast<DType>(view.dtype));
}

std::size_t bytes_of(const attest_tensor& view) {
  std::size_t bytes = element_size(view);
  for (int axis = 0; axis < view.rank; ++axis) bytes *= static_cast<std::size_t>(view.shape[axis]);
  return bytes;
}

/// visit(flat index, byte from the first element) for each element, in row-major order.
template <class Visit>
void for_each_element(const attest_tensor& view, Visit visit) {
  std::array<std::int64_t, 4> shape{1, 1, 1, 1}, stride{};
  for (int axis = 0; axis < view.rank; ++axis) {
    const std::size_t to = std::size_t{4} - static_cast<std::size_t>(view.rank - axis);
    shape[to] = view.shape[axis];
    stride[to] = view.stride[axis];
  }
  const std::size_t size = element_size(view);
  std::size_t flat = 0;
  for (std::int64_t i = 0; i < shape[0]; ++i)
    for (std::int64_t j = 0; j < shape[1]; ++j)
      for (std::int64_t k = 0; k < shape[2]; ++k)
        for (std::int64_t l = 0; l < shape[3]; ++l, ++flat)
          visit(flat, size * static_cast<std::size_t>(i * stride[0] + j * stride[1] + k * stride[2] + l * stride[3]));
}

/// The pattern of one element, little-endian in the low bytes.
std::uint64_t pattern_of(DType dtype, GuardedMemory::Fill fill) {
  if (fill == GuardedMemory::Fill::ordinary) return 0x5a5a5a5a5a5a5a5aU;
  switch (dtype) {
    case DType::f64:
      return 0x7ff457a77e57a75eU;
    case DType::f32:
      return 0x7fa57a5eU;
    case DType::f16:
      return 0x7d5eU;
    case DType::bf16:
      return 0x7fa5U;
    case DType::f8_e5m2:
      return 0x7dU;
    case DType::f8_e4m3:
    case DType::boolean:
    case DType::i32:
    case DType::i8:
      return 0x7fU;
  }
  return 0;
}

/// Elements that a fill repeats. A prime number of them, so that of leftovers no row of an output begins like the next.
using FillElements = std::vector<std::byte>;
constexpr std::int64_t fill_count = 1021;

FillElements repeated_pattern(DType dtype, GuardedMemory::Fill fill) {
  const std::uint64_t pattern = pattern_of(dtype, fill);
  const std::size_t size = size_of(dtype);
  FillElements elements(static_cast<std::size_t>(fill_count) * size);
  for (std::size_t at = 0; at < elements.size(); at += size) std::memcpy(elements.data() + at, &pattern, size);
  return elements;
}

FillElements leftovers(DType dtype) {
  std::random_device random;
  FillElements elements(static_cast<std::size_t>(fill_count) * size_of(dtype));
  // In [-2, 2), as a mean of ordinary values is.
  for (std::int64_t i = 0; i < fill_count; ++i)
    store_element(elements.data(), dtype, i, std::ldexp(static_cast<double>(random()), -30) - 2.0);
  return elements;
}

/// Of each format and fill one, made when it is first asked for.
const FillElements& elements_of(DType dtype, GuardedMemory::Fill fill) {
  constexpr std::size_t formats = Words<DType>::names.size(), fills = 3;
  static std::array<std::array<FillElements, fills>, formats> all;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  FillElements& one = all[static_cast<std::size_t>(dtype)][static_cast<std::size_t>(fill)];
  if (one.empty()) one = fill == GuardedMemory::Fill::leftover ? leftovers(dtype) : repeated_pattern(dtype, fill);
  return one;
}

/// Writes the fill of elements first, first + 1, … of an output.
void fill(std::byte* to, std::size_t bytes, const FillElements& elements, std::size_t first_byte) {
  std::size_t at = first_byte % elements.size();
  while (bytes > 0) {
    const std::size_t part = std::min(bytes, elements.size() - at);
    std::memcpy(to, elements.data() + at, part);
    to += part;
    bytes -= part;
    at = 0;
  }
}

/// Elements that hold the fill still.
template <class Word>
void find_fill(const std::byte* in, std::size_t bytes, const FillElements& elements, std::size_t most,
               std::vector<std::int64_t>& found) {
  std::size_t of_fill = 0;
  for (std::size_t at = 0; at < bytes && found.size() < most; at += sizeof(Word)) {
    Word word, filled;
    std::memcpy(&word, in + at, sizeof(Word));
    std::memcpy(&filled, elements.data() + of_fill, sizeof(Word));
    if (word == filled) found.push_back(static_cast<std::int64_t>(at / sizeof(Word)));
    of_fill += sizeof(Word);
    if (of_fill == elements.size()) of_fill = 0;
  }
}

/// The first byte that is no poison any more; `to` where all are.
const std::byte* first_changed(const std::byte* from, const std::byte* to) {
  constexpr std::size_t words = 8;
  for (; to - from >= static_cast<std::ptrdiff_t>(words * sizeof(std::uint64_t));
       from += words * sizeof(std::uint64_t)) {
    std::array<std::uint64_t, words> word;
    std::memcpy(word.data(), from, sizeof word);
    std::uint64_t all = ~std::uint64_t{0};
    for (const std::uint64_t w : word) all &= w;
    if (all != ~std::uint64_t{0}) break;
  }
  return std::find_if(from, to, [](std::byte b) { return b != poison; });
}

/// A digest that any change of a single word changes.
std::uint64_t digest(const std::byte* from, std::size_t bytes) {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15U;
  std::array<std::uint64_t, 4> lane{1, 2, 3, 4}, word{};  // four, as a product waits for the one before
  for (; bytes >= sizeof word; from += sizeof word, bytes -= sizeof word) {
    std::memcpy(word.data(), from, sizeof word);
    for (std::size_t i = 0; i < lane.size(); ++i) lane[i] = (lane[i] ^ word[i]) * odd;
  }
  word = {};
  if (bytes != 0) std::memcpy(word.data(), from, bytes);
  std::uint64_t result = bytes;
  for (std::size_t i = 0; i < lane.size(); ++i) result = (result ^ ((lane[i] ^ word[i]) * odd)) * odd;
  return result;
}

}  // namespace

GuardedMemory::~GuardedMemory() {
  if (watched_) ignore_edges_of(*this);
}

void GuardedMemory::clear(std::int64_t alignment, Fill fill, Edge edge) {
  armed_ = false;
  // Another thread's fault may have found it armed, and its handler reads where the last call's tensors are.
  if (watched_) wait_for_edge_faults();
  protect_again();
  for (std::size_t i = 0; i < count_; ++i) sparse_[i].reset();
  count_ = 0;
  alias_count_ = 0;
  zone_count_ = 0;
  sealed_ = false;
  if (edge != Edge::none && !watched_) watched_ = watch_edges_of(*this);
  edge_ = watched_ ? edge : Edge::none;
  asked_alignment_ = static_cast<std::size_t>(alignment);
  alignment_ = std::max<std::size_t>(64, 2 * asked_alignment_);  // so that what is shifted is aligned no better
  assert((alignment_ & (alignment_ - 1)) == 0);
  end_ = rounded_up(guard, alignment_);
  fill_ = fill;
}

void GuardedMemory::add(std::string_view name, attest_tensor& view, const std::byte* original, const std::byte* after,
                        MemoryLayout layout) {
  assert(count_ < pieces_.size());
  const std::size_t element = element_size(view);
  Piece piece{.name = name,
              .view = &view,
              .layout = {},
              .original = original,
              .after = after != nullptr ? after : original,
              .dense = true,
              .far = false,
              .offset = end_,
              .size = bytes_of(view),
              .first = 0,
              .memory = nullptr};
  if (layout != MemoryLayout::row_major) {
    const std::size_t unit = std::max<std::size_t>(1, asked_alignment_ / element);
    const Placement placed = place(layout, view, static_cast<std::int64_t>(unit));
    std::copy_n(placed.stride.begin(), 4, view.stride);
    piece.dense = false;
    piece.size = element * static_cast<std::size_t>(placed.elements);
    piece.first = element * static_cast<std::size_t>(placed.start);
    // What lies before the first element is nobody's; the page is to touch that element.
    if (edge_ == Edge::front) piece.size -= std::exchange(piece.first, 0);
    piece.far = is_far(layout) && placed.elements > far_elements;
  }
  piece.layout = view;
  pieces_[count_++] = piece;
  if (!piece.far) end_ = rounded_up(end_ + piece.size + guard, alignment_);
}

void GuardedMemory::input(std::string_view name, attest_tensor& view, MemoryLayout layout, const std::byte* after) {
  if (view.data == nullptr) return;
  if (layout == MemoryLayout::aliased && after == nullptr && alias(view)) return;
  // Without another to lie in, it is row-major, and the next may lie in it.
  if (layout == MemoryLayout::aliased) layout = MemoryLayout::row_major;
  // What a call writes has a place for each element, as outputs have.
  if (after != nullptr && !is_for_outputs(layout)) layout = MemoryLayout::row_major;
  add(name, view, static_cast<const std::byte*>(view.data), after, layout);
}

bool GuardedMemory::alias(attest_tensor& view) {
  const auto same = [&](const Piece& piece) {
    const attest_tensor& other = piece.layout;
    return piece.dense && piece.original != nullptr && piece.original == piece.after && other.dtype == view.dtype &&
           other.rank == view.rank && std::equal(view.shape, view.shape + view.rank, other.shape) &&
           std::memcmp(piece.original, view.data, piece.size) == 0;
  };
  const auto pieces = std::span(pieces_).first(count_);
  const auto found = std::ranges::find_if(pieces, same);
  if (found == pieces.end()) return false;
  aliases_[alias_count_++] = {&view, static_cast<std::size_t>(found - pieces.begin())};
  return true;
}

void GuardedMemory::output(std::string_view name, attest_tensor& view, MemoryLayout layout) {
  add(name, view, nullptr, nullptr, layout);
}

void GuardedMemory::add_zone(std::byte* from, std::byte* to, int after, int before) {
  std::fill(from, to, poison);
  zones_[zone_count_++] = {from, to, after, before};
}

void GuardedMemory::lay_out_far(std::size_t at) {
  Piece& piece = pieces_[at];
  const std::size_t margin = rounded_up(guard, alignment_);
  sparse_[at] = std::make_unique<SparseMemory>(piece.size + 2 * margin);
  piece.memory = sparse_[at]->begin() + margin;
  std::vector<Window>& windows = windows_[at];
  windows.clear();
  const std::size_t element = element_size(piece.layout);
  std::vector<std::byte*> elements;
  for_each_element(piece.layout,
                   [&](std::size_t, std::size_t byte) { elements.push_back(piece.memory + piece.first + byte); });
  std::ranges::sort(elements);
  for (std::byte* const from : elements) {
    if (windows.empty() || from - static_cast<std::ptrdiff_t>(guard) > windows.back().to)
      windows.push_back({from - guard, from + element + guard});
    else
      windows.back().to = from + element + guard;
  }
  for (const Window& window : windows) std::fill(window.from, window.to, poison);
}

void GuardedMemory::fill_in(const Piece& piece) const {
  const FillElements& elements = elements_of(static_cast<DType>(piece.layout.dtype), fill_);
  if (!piece.dense) {
    if (!piece.far) std::fill_n(piece.memory, piece.size, poison);
    const std::size_t element = element_size(piece.layout);
    for_each_element(piece.layout, [&](std::size_t flat, std::size_t at) {
      std::byte* const to = piece.memory + piece.first + at;
      if (piece.original != nullptr) {
        std::memcpy(to, piece.original + flat * element, element);
      } else {
        fill(to, element, elements, flat * element);
      }
    });
  } else if (piece.original != nullptr) {
    std::memcpy(piece.memory, piece.original, piece.size);
  } else {
    fill(piece.memory, piece.size, elements, 0);
  }
  piece.view->data = piece.memory + piece.first;
}

void GuardedMemory::lay_out_in_a_block() {
  if (ends_ == Ends::faulting) {
    pages_.resize(end_);
    floor_ = pages_.begin();
    start_ = pages_.end() - end_;  // end_ is a multiple of the alignment
    assert(GuardedPages::alignment % alignment_ == 0);
  } else {
    if (block_.size() < end_ + alignment_) block_.resize(end_ + alignment_);
    const auto address = reinterpret_cast<std::uintptr_t>(block_.data());
    start_ = block_.data() + (rounded_up(address, alignment_) - address);
    floor_ = start_;
  }
  std::byte* next = floor_;
  int before = -1;
  for (std::size_t i = 0; i < count_; ++i) {
    Piece& piece = pieces_[i];
    if (piece.far) continue;
    piece.memory = start_ + piece.offset;
    add_zone(next, piece.memory, before, static_cast<int>(i));
    next = piece.memory + piece.size;
    before = static_cast<int>(i);
  }
  add_zone(next, start_ + end_, before, -1);
}

void GuardedMemory::lay_out_at_edges() {
  constexpr std::size_t region = std::size_t{1} << 20U;
  for (std::size_t i = 0; i < count_; ++i) {
    Piece& piece = pieces_[i];
    if (piece.far) continue;
    std::unique_ptr<GuardedPages>& pages = own_pages_[i];
    if (!pages) pages = std::make_unique<GuardedPages>(region);
    const std::size_t room = rounded_up(piece.size, std::max(asked_alignment_, element_size(piece.layout)));
    pages->resize(room + guard);
    const int own = static_cast<int>(i);
    if (edge_ == Edge::front) {
      piece.memory = pages->begin();
      add_zone(piece.memory + piece.size, piece.memory + room + guard, own, -1);
    } else {
      piece.memory = pages->end() - room;
      add_zone(piece.memory - guard, piece.memory, -1, own);
      add_zone(piece.memory + piece.size, pages->end(), own, -1);
    }
  }
}

void GuardedMemory::lay_out() {
  if (edge_ == Edge::none) {
    lay_out_in_a_block();
  } else {
    lay_out_at_edges();
  }
  for (std::size_t i = 0; i < count_; ++i)
    if (pieces_[i].far) lay_out_far(i);
  for (std::size_t i = 0; i < count_; ++i) fill_in(pieces_[i]);
  for (const Alias& alias : std::span(aliases_).first(alias_count_)) alias.view->data = pieces_[alias.piece].view->data;
  armed_ = edge_ != Edge::none;
}

std::optional<std::string> GuardedMemory::fault_in_words() const {
  if (!fault_) return std::nullopt;
  const char* const did = fault_->access == Access::read    ? "read"
                          : fault_->access == Access::write ? "wrote"
                                                            : "read or wrote";
  const bool behind = fault_->place.side == FaultPlace::Side::behind;
  return fmt::format("{} outside the tensors: byte {} {} of {}, where this call had a protected page", did,
                     fault_->place.bytes, behind ? "after the end" : "before the start", fault_->place.name);
}

std::optional<std::string> GuardedMemory::trespass() const {
  if (std::optional<std::string> fault = fault_in_words()) return fault;
  for (const Zone& zone : std::span(zones_).first(zone_count_)) {
    const std::byte* const bad = first_changed(zone.from, zone.to);
    if (bad == zone.to) continue;
    // Blame the tensor whose end is nearer: kernels overrun more often than they underrun.
    if (zone.after >= 0 && (zone.before < 0 || bad - zone.from <= zone.to - bad)) {
      return fmt::format("wrote outside the tensors: byte {} after the end of {} changed", bad - zone.from,
                         pieces_[static_cast<std::size_t>(zone.after)].name);
    }
    return fmt::format("wrote outside the tensors: byte {} before the start of {} changed", zone.to - bad,
                       pieces_[static_cast<std::size_t>(zone.before)].name);
  }
  for (std::size_t i = 0; i < count_; ++i) {
    const Piece& piece = pieces_[i];
    if (piece.far) {
      if (std::optional<std::string> found = trespass_in_windows(i)) return found;
    } else if (!piece.dense) {
      if (std::optional<std::string> found = trespass_between_elements(piece)) return found;
    } else if (piece.original != nullptr && piece.size != 0 &&
               std::memcmp(piece.memory, piece.after, piece.size) != 0) {
      return wrote_to(piece);
    }
  }
  return std::nullopt;
}

std::string GuardedMemory::wrote_to(const Piece& piece) {
  if (piece.after == piece.original) return fmt::format("wrote to its input {}; inputs are read-only", piece.name);
  const std::size_t element = element_size(piece.layout);
  std::string what;
  for_each_element(piece.layout, [&](std::size_t flat, std::size_t at) {
    const std::byte *const found = piece.memory + piece.first + at, *const after = piece.after + flat * element,
                           *const before = piece.original + flat * element;
    if (!what.empty() || std::memcmp(found, after, element) == 0) return;
    what = words_of_append(piece.name,
                           Shape(std::span(piece.layout.shape).first(static_cast<std::size_t>(piece.layout.rank))),
                           static_cast<std::int64_t>(flat), std::memcmp(before, after, element) != 0);
  });
  return what;
}

std::optional<std::string> GuardedMemory::trespass_between_elements(const Piece& piece) const {
  const std::size_t element = element_size(piece.layout);
  const std::byte* const memory = piece.memory;
  std::vector<bool> owned(piece.size);
  bool intact = true;
  for_each_element(piece.layout, [&](std::size_t flat, std::size_t at) {
    const std::size_t from = piece.first + at;
    std::fill_n(owned.begin() + static_cast<std::ptrdiff_t>(from), element, true);
    if (piece.original != nullptr)
      intact = intact && std::memcmp(memory + from, piece.after + flat * element, element) == 0;
  });
  std::size_t bad = 0;
  while (bad < piece.size && (owned[bad] || memory[bad] == poison)) ++bad;
  if (bad < piece.first)
    return fmt::format("wrote outside the tensors: byte {} before the start of {} changed", piece.first - bad,
                       piece.name);
  if (bad < piece.size) {
    std::size_t before = 0, behind = 0;  // the element whose end lies nearest below, and that end
    for_each_element(piece.layout, [&](std::size_t flat, std::size_t at) {
      const std::size_t end = piece.first + at + element;
      if (end <= bad && end > behind) before = flat, behind = end;
    });
    return fmt::format("wrote into the gaps of {}: byte {} behind its element {} (flat index) changed", piece.name,
                       bad - behind, before);
  }
  if (!intact) return wrote_to(piece);
  return std::nullopt;
}

std::vector<GuardedMemory::Window> GuardedMemory::windows_of(std::size_t at) const {
  const Piece& piece = pieces_[at];
  if (piece.far) return windows_[at];
  return {{piece.memory, piece.memory + piece.size}};
}

std::optional<std::string> GuardedMemory::trespass_in_windows(std::size_t at) const {
  const Piece& piece = pieces_[at];
  const std::size_t element = element_size(piece.layout);
  std::vector<std::byte*> elements;
  bool intact = true;
  for_each_element(piece.layout, [&](std::size_t flat, std::size_t byte) {
    std::byte* const own = piece.memory + piece.first + byte;
    elements.push_back(own);
    if (piece.original != nullptr) intact = intact && std::memcmp(own, piece.after + flat * element, element) == 0;
  });
  std::ranges::sort(elements);
  std::size_t next = 0;
  for (const Window& window : windows_[at]) {
    for (std::byte* byte = window.from; byte < window.to; ++byte) {
      if (next < elements.size() && byte == elements[next]) {
        byte += element - 1;
        ++next;
      } else if (*byte != poison) {
        return fmt::format("wrote into the gaps of {}: a byte beside its elements, which lie far apart, changed",
                           piece.name);
      }
    }
  }
  if (!intact) return wrote_to(piece);
  return std::nullopt;
}

const GuardedMemory::Piece& GuardedMemory::output_piece(int which) const {
  for (std::size_t i = 0; i < count_; ++i) {
    if (pieces_[i].original == nullptr && which-- == 0) return pieces_[i];
  }
  assert(false && "no such output");
  return pieces_[0];
}

std::vector<std::int64_t> GuardedMemory::untouched(int which, std::size_t most) const {
  const Piece& piece = output_piece(which);
  const auto dtype = static_cast<DType>(piece.layout.dtype);
  const Tensor gathered = piece.dense ? Tensor() : copy_of(which);
  const std::byte* const data = piece.dense ? piece.memory : gathered.bytes().data();
  const std::size_t size = piece.dense ? piece.size : gathered.bytes().size();
  std::vector<std::int64_t> found;
  const FillElements& elements = elements_of(dtype, fill_);
  switch (size_of(dtype)) {
    case 8:
      find_fill<std::uint64_t>(data, size, elements, most, found);
      break;
    case 4:
      find_fill<std::uint32_t>(data, size, elements, most, found);
      break;
    case 2:
      find_fill<std::uint16_t>(data, size, elements, most, found);
      break;
    default:
      find_fill<std::uint8_t>(data, size, elements, most, found);
  }
  return found;
}

Tensor GuardedMemory::copy_of(int which) const {
  const Piece& piece = output_piece(which);
  attest_tensor view = piece.layout;
  view.data = piece.memory + piece.first;
  if (!piece.dense) return gather(view);
  Tensor tensor(static_cast<DType>(view.dtype), Shape(std::span(view.shape, static_cast<std::size_t>(view.rank))));
  if (piece.size != 0) std::memcpy(tensor.bytes().data(), view.data, piece.size);
  return tensor;
}

std::uint64_t GuardedMemory::digest_of_piece(std::size_t piece) const {
  std::uint64_t all = 0;
  for (const Window& window : windows_of(piece))
    all = all * 3 + digest(window.from, static_cast<std::size_t>(window.to - window.from));
  return all;
}

std::uint64_t GuardedMemory::digest_of_zone(std::size_t zone) const {
  return digest(zones_[zone].from, static_cast<std::size_t>(zones_[zone].to - zones_[zone].from));
}

void GuardedMemory::seal() {
  for (std::size_t i = 0; i < count_; ++i) piece_digests_[i] = digest_of_piece(i);
  for (std::size_t i = 0; i < zone_count_; ++i) zone_digests_[i] = digest_of_zone(i);
  sealed_ = true;
}

std::optional<std::string> GuardedMemory::changed_since_sealed() const {
  if (!sealed_) return std::nullopt;
  const auto words = [](std::string_view where, std::string_view name) {
    return fmt::format(
        "went on writing after a call had returned: the memory {} {} changed between two calls; a thread "
        "that it leaves behind must leave the tensors alone",
        where, name);
  };
  for (std::size_t i = 0; i < count_; ++i)
    if (digest_of_piece(i) != piece_digests_[i]) return words("of", pieces_[i].name);
  for (std::size_t i = 0; i < zone_count_; ++i) {
    if (digest_of_zone(i) == zone_digests_[i]) continue;
    const Zone& zone = zones_[i];
    return zone.after >= 0 ? words("behind", pieces_[static_cast<std::size_t>(zone.after)].name)
                           : words("before", pieces_[static_cast<std::size_t>(zone.before)].name);
  }
  return std::nullopt;
}

bool GuardedMemory::inside(std::size_t piece, const std::byte* at) const noexcept {
  return at >= own_pages_[piece]->begin() && at < own_pages_[piece]->end();
}

std::optional<FaultPlace> GuardedMemory::place_of(const void* address) const noexcept {
  const auto* const at = static_cast<const std::byte*>(address);
  // Once: a thread that a kernel left behind may crash while the next call is laid out. The names are an old call's
  // then.
  const std::size_t count = count_;
  if (edge_ != Edge::none) {
    for (std::size_t i = 0; i < count; ++i) {
      const Piece& piece = pieces_[i];
      if (piece.far || !own_pages_[i] || !own_pages_[i]->covers(address)) continue;
      if (inside(i, at)) return FaultPlace{FaultPlace::Side::within, piece.name, 0};
      // From the first element and the last, whatever gaps a layout leaves before the first.
      if (at < piece.memory) {
        return FaultPlace{FaultPlace::Side::before, piece.name,
                          static_cast<std::size_t>(piece.memory + piece.first - at)};
      }
      return FaultPlace{FaultPlace::Side::behind, piece.name,
                        static_cast<std::size_t>(at - (piece.memory + piece.size))};
    }
    return std::nullopt;
  }
  if (ends_ == Ends::open || count == 0 || !pages_.covers(address)) return std::nullopt;
  // Of the tensors in the block, which are all but those that lie far apart.
  std::size_t first_in = count, last_in = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (pieces_[i].far) continue;
    first_in = std::min(first_in, i);
    last_in = i;
  }
  if (first_in == count) return std::nullopt;
  if (at >= pages_.end()) {
    const Piece& last = pieces_[last_in];
    return FaultPlace{FaultPlace::Side::behind, last.name,
                      static_cast<std::size_t>(at - start_) - last.offset - last.size};
  }
  if (at < pages_.begin()) {
    const Piece& first = pieces_[first_in];
    return FaultPlace{FaultPlace::Side::before, first.name, static_cast<std::size_t>(start_ + first.offset - at)};
  }
  for (std::size_t i = count - 1; i > 0; --i) {
    if (!pieces_[i].far && at >= start_ + pieces_[i].offset)
      return FaultPlace{FaultPlace::Side::within, pieces_[i].name, 0};
  }
  return FaultPlace{FaultPlace::Side::within, pieces_[first_in].name, 0};
}

bool GuardedMemory::take_fault(const void* address, Access access) noexcept {
  if (!armed_) return false;
  const std::optional<FaultPlace> place = place_of(address);
  const std::size_t page = page_bytes();
  if (!place || place->side == FaultPlace::Side::within || place->bytes > most_faults * page) return false;
  const std::size_t number = faults_.fetch_add(1);
  if (number >= most_faults) return false;
  auto* const at = static_cast<std::byte*>(const_cast<void*>(address));  // of our own pages
  std::byte* const from = at - reinterpret_cast<std::uintptr_t>(address) % page;
  if (::mprotect(from, page, PROT_READ | PROT_WRITE) != 0) return false;
  // As guards are: what is read here and used shows in the result too.
  std::memset(from, std::to_integer<int>(poison), page);
  opened_[number] = from;
  if (number == 0) fault_ = Fault{*place, access};
  return true;
}

void GuardedMemory::protect_again() {
  const std::size_t opened = std::min(faults_.exchange(0), most_faults);
  for (std::size_t i = 0; i < opened; ++i) {
    std::byte* const from = std::exchange(opened_[i], nullptr);
    if (from != nullptr) ::mprotect(from, page_bytes(), PROT_NONE);
  }
  fault_.reset();
}

}  // namespace attest
