#include "guarded_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>

namespace attest {
namespace {

constexpr std::byte poison{0xff};

std::size_t rounded_up(std::size_t value, std::size_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

std::size_t bytes_of(const attest_tensor& view) {
  std::size_t bytes = size_of(static_cast<DType>(view.dtype));
  for (int axis = 0; axis < view.rank; ++axis) bytes *= static_cast<std::size_t>(view.shape[axis]);
  return bytes;
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
      return 0x7fU;
  }
  return 0;
}

template <class Word>
void fill_words(std::byte* to, std::size_t bytes, std::uint64_t pattern) {
  const auto word = static_cast<Word>(pattern);
  for (std::size_t i = 0; i < bytes; i += sizeof(Word)) std::memcpy(to + i, &word, sizeof(Word));
}

template <class Word>
void find_words(const std::byte* in, std::size_t bytes, std::uint64_t pattern, std::size_t most,
                std::vector<std::int64_t>& found) {
  const auto wanted = static_cast<Word>(pattern);
  for (std::size_t i = 0; i < bytes && found.size() < most; i += sizeof(Word)) {
    Word word;
    std::memcpy(&word, in + i, sizeof(Word));
    if (word == wanted) found.push_back(static_cast<std::int64_t>(i / sizeof(Word)));
  }
}

}  // namespace

void GuardedMemory::clear(std::int64_t alignment, Fill fill) {
  count_ = 0;
  alignment_ = std::max<std::size_t>(64, static_cast<std::size_t>(alignment));
  assert((alignment_ & (alignment_ - 1)) == 0);
  end_ = rounded_up(guard, alignment_);
  fill_ = fill;
}

void GuardedMemory::add(const char* name, attest_tensor& view, const std::byte* original) {
  assert(count_ < pieces_.size());
  const std::size_t size = bytes_of(view);
  pieces_[count_++] = {name, &view, view, original, end_, size};
  end_ = rounded_up(end_ + size + guard, alignment_);
}

void GuardedMemory::input(const char* name, attest_tensor& view) {
  if (view.data != nullptr) add(name, view, static_cast<const std::byte*>(view.data));
}

void GuardedMemory::output(const char* name, attest_tensor& view) {
  add(name, view, nullptr);
}

void GuardedMemory::lay_out() {
  if (block_.size() < end_ + alignment_) block_.resize(end_ + alignment_);
  const auto address = reinterpret_cast<std::uintptr_t>(block_.data());
  start_ = block_.data() + (rounded_up(address, alignment_) - address);
  std::size_t next = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    const Piece& piece = pieces_[i];
    std::byte* const data = start_ + piece.offset;
    std::fill(start_ + next, data, poison);
    if (piece.original != nullptr) {
      std::memcpy(data, piece.original, piece.size);
    } else {
      const auto dtype = static_cast<DType>(piece.layout.dtype);
      const std::uint64_t pattern = pattern_of(dtype, fill_);
      switch (size_of(dtype)) {
        case 8:
          fill_words<std::uint64_t>(data, piece.size, pattern);
          break;
        case 4:
          fill_words<std::uint32_t>(data, piece.size, pattern);
          break;
        case 2:
          fill_words<std::uint16_t>(data, piece.size, pattern);
          break;
        default:
          fill_words<std::uint8_t>(data, piece.size, pattern);
      }
    }
    piece.view->data = data;
    next = piece.offset + piece.size;
  }
  std::fill(start_ + next, start_ + end_, poison);
}

std::optional<std::string> GuardedMemory::trespass() const {
  const auto changed = [](std::byte b) { return b != poison; };
  std::size_t next = 0;
  for (std::size_t i = 0; i <= count_; ++i) {
    const std::size_t stop = i < count_ ? pieces_[i].offset : end_;
    const std::byte* const bad = std::find_if(start_ + next, start_ + stop, changed);
    if (bad != start_ + stop) {
      const auto at = static_cast<std::size_t>(bad - start_);
      // Blame the tensor whose end is nearer: kernels overrun more often than they underrun.
      if (i > 0 && (i == count_ || at - next <= stop - at)) {
        return fmt::format("wrote outside the tensors: byte {} after the end of {} changed", at - next,
                           pieces_[i - 1].name);
      }
      return fmt::format("wrote outside the tensors: byte {} before the start of {} changed", stop - at,
                         pieces_[i].name);
    }
    if (i == count_) break;
    const Piece& piece = pieces_[i];
    next = piece.offset + piece.size;
    if (piece.original != nullptr && piece.size != 0 &&
        std::memcmp(start_ + piece.offset, piece.original, piece.size) != 0) {
      return fmt::format("wrote to its input {}; inputs are read-only", piece.name);
    }
  }
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
  const std::uint64_t pattern = pattern_of(dtype, fill_);
  const std::byte* const data = start_ + piece.offset;
  std::vector<std::int64_t> found;
  switch (size_of(dtype)) {
    case 8:
      find_words<std::uint64_t>(data, piece.size, pattern, most, found);
      break;
    case 4:
      find_words<std::uint32_t>(data, piece.size, pattern, most, found);
      break;
    case 2:
      find_words<std::uint16_t>(data, piece.size, pattern, most, found);
      break;
    default:
      find_words<std::uint8_t>(data, piece.size, pattern, most, found);
  }
  return found;
}

Tensor GuardedMemory::copy_of(int which) const {
  const Piece& piece = output_piece(which);
  Tensor tensor(static_cast<DType>(piece.layout.dtype),
                Shape(std::span(piece.layout.shape, static_cast<std::size_t>(piece.layout.rank))));
  if (piece.size != 0) std::memcpy(tensor.bytes().data(), start_ + piece.offset, piece.size);
  return tensor;
}

}  // namespace attest
