// The options that say which shapes a run draws, as words of a command line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "properties/generators/production.h"

namespace attest {

/// The options that draw the shapes of a journal (RunRecord::shapes) again, each behind a space; empty where none is
/// needed.
[[nodiscard]] std::string shape_options(std::string_view recorded);

/// "B,H,KV,M,N,DK" or "B,H,KV,M,N,DK,DV", where DV is DK without it. Throws UsageError, with `option` and the text, for
/// anything else, for heads that are no multiple of key-value heads, and for tensors beyond 2^30 elements.
[[nodiscard]] Extents shape_of(std::string_view option, std::string_view text);
/// As shape_of takes it.
[[nodiscard]] std::string text_of(const Extents& shape);
/// The rule that a shape of numbers is against, as shape_of has it; empty where there is none.
[[nodiscard]] std::string why_no_shape(const Extents& shape);
/// A shape a line; what follows a # is a comment. Throws UsageError for a file that cannot be read, for a line that is
/// no shape, with its number, and for a file without any.
[[nodiscard]] std::vector<Extents> shapes_in(std::string_view option, const std::filesystem::path& file);

/// Bytes of memory that this machine has.
[[nodiscard]] double memory_here();
/// Throws UsageError where calls of one of the shapes, one in each job, take more than `memory`: as its tensors are in
/// elements of so many bytes, four times their size each (measured on a kernel in the same process: 2.9 times). The
/// system would end the run, and its other results with it.
void refuse_beyond_memory(const std::vector<Extents>& shapes, std::int64_t element_bytes, int jobs, double memory);

}  // namespace attest
