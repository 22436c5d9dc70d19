#include "core/isolation/shared_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "core/value/safetensors.h"

namespace attest::process {
namespace {

/// Writes at the end of what is there; false where there is no memory for it.
bool append(const Descriptor& file, const void* data, std::size_t bytes) {
  const auto* at = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const ssize_t put = ::write(file.get(), at, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    at += put;
    bytes -= static_cast<std::size_t>(put);
  }
  return true;
}

/// A new file that `fill` fills, sealed then; none where something fails that is no lack of descriptors.
template <class Fill>
Descriptor made(const char* name, int seals, const Fill& fill) {
  try {
    Descriptor file = make_memory_file(name);
    if (!fill(file)) return {};
    seal(file, seals);
    return file;
  } catch (const std::system_error&) {
    return {};
  }
}

}  // namespace

Descriptor sealed_file(const CasePieces& pieces) {
  return made("attest-request", F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE, [&](const Descriptor& file) {
    return append(file, pieces.head.data(), pieces.head.size()) &&
           std::ranges::all_of(pieces.tensors, [&](std::span<const std::byte> tensor) {
             return append(file, tensor.data(), tensor.size());
           });
  });
}

Descriptor file_for_answer(std::uint64_t bytes) {
  static const std::vector<std::byte> nan(std::size_t{1} << 20U, std::byte{0xff});
  return made("attest-reply", F_SEAL_SHRINK | F_SEAL_GROW, [&](const Descriptor& file) {
    for (std::uint64_t left = bytes; left > 0;) {
      const std::size_t part = static_cast<std::size_t>(std::min<std::uint64_t>(left, nan.size()));
      if (!append(file, nan.data(), part)) return false;
      left -= part;
    }
    return true;
  });
}

std::string path_of(const Descriptor& file) {
  return fmt::format("/proc/{}/fd/{}", ::getpid(), file.get());
}

bool copy_from(const Descriptor& file, std::uint64_t offset, std::span<std::byte> into) {
  while (!into.empty()) {
    const ssize_t got = ::pread(file.get(), into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    into = into.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return true;
}

Shape lse_shape(const Case& c) {
  const Shape shape = c.out_shape();
  return {shape[0], shape[1], shape[2]};
}

SharedTensors::SharedTensors(const Case& c, const Provenance& said, DType output, bool want_lse)
    : operation_(c.operation),
      out_{output, c.out_shape(), 0},
      request_(sealed_file(pieces_of(c, said, shared_alignment))) {
  if (want_lse)
    lse_ = Place{DType::f64, lse_shape(c), (out_.end() + shared_alignment - 1) / shared_alignment * shared_alignment};
  // Nobody maps an empty file.
  const std::uint64_t bytes = std::max<std::uint64_t>(lse_ ? lse_->end() : out_.end(), shared_alignment);
  if (request_) reply_ = file_for_answer(bytes);
}

std::string SharedTensors::frame() const {
  const auto entry = [](const Place& place) {
    nlohmann::json shape = nlohmann::json::array();
    for (int axis = 0; axis < place.shape.rank(); ++axis) shape.push_back(place.shape[axis]);
    return nlohmann::json{
        {"dtype", safetensors_name_of(place.dtype)}, {"shape", shape}, {"data_offsets", {place.offset, place.end()}}};
  };
  nlohmann::json places{{"out", entry(out_)}};
  if (lse_) places["lse"] = entry(*lse_);
  return write_safetensors({{},
                            {{"attest", "1"},
                             {"op", std::string(name_of(operation_))},
                             {"request_file", path_of(request_)},
                             {"reply_file", path_of(reply_)},
                             {"reply", places.dump()}}});
}

std::optional<SharedTensors::Answer> SharedTensors::answer() const {
  const auto taken = [&](const Place& place, Tensor& tensor) {
    tensor = Tensor(place.dtype, place.shape);
    return copy_from(reply_, place.offset, tensor.bytes());
  };
  Answer answer;
  if (!taken(out_, answer.out) || (lse_ && !taken(*lse_, answer.lse))) return std::nullopt;
  return answer;
}

}  // namespace attest::process
