// A sink as one more key of the problem.
#pragma once

#include "core/kernel/kernel_under_test.h"
#include "core/problem/case.h"

namespace attest {

/// The case with sinks that the format of its mask holds, and without them, with a key appended in their place: the key
/// and its value are 0, and the mask adds the sink to its score. No position hides it, as what hides keys by position
/// is in the mask by then.
struct SinkAsKey {
  Case sinks, key;
};
/// Of a case with sinks, without sequences and dropped weights. Throws NoAnswer where the manifest allows no more keys.
[[nodiscard]] SinkAsKey sink_as_key(const Kernel& kernel, const Case& c);

}  // namespace attest
