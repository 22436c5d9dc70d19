// The inputs of a problem, put into guarded memory in the layouts of their case.
#pragma once

#include <attest/kernel.h>

#include "core/call/guarded_memory.h"
#include "core/problem/fields.h"
#include "core/problem/memory.h"

namespace attest {

/// k and v as a call leaves them that writes new keys; they outlive it. Absent: as they were.
struct CacheAfter {
  Tensor k, v;
  [[nodiscard]] const std::byte* of(Slot slot) const {
    const Tensor& after = slot == Slot::k ? k : v;
    return (slot == Slot::k || slot == Slot::v) && after.present() ? after.bytes().data() : nullptr;
  }
};

/// Adds the tensors that are present; their views are those of `problem`.
template <class Packed>
void add_inputs(GuardedMemory& memory, Packed& problem, const Layouts& layouts, const CacheAfter& after = {}) {
  for (const TensorField& field : tensor_fields) {
    if constexpr (std::same_as<Packed, attest_problem>) {
      if (field.in_attention != nullptr)
        memory.input(field.name(), problem.*field.in_attention, layouts[field.slot], after.of(field.slot));
    } else {
      if (field.in_multihead != nullptr) memory.input(field.name(), problem.*field.in_multihead, layouts[field.slot]);
    }
  }
}

}  // namespace attest
