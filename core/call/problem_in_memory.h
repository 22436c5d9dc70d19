// The inputs of a problem, put into guarded memory in the layouts of their case.
#pragma once

#include <attest/kernel.h>

#include "core/call/guarded_memory.h"
#include "core/problem/fields.h"
#include "core/problem/memory.h"

namespace attest {

/// Adds the tensors that are present; their views are those of `problem`.
template <class Packed>
void add_inputs(GuardedMemory& memory, Packed& problem, const Layouts& layouts) {
  for (const TensorField& field : tensor_fields) {
    if constexpr (std::same_as<Packed, attest_problem>) {
      if (field.in_attention != nullptr) memory.input(field.name(), problem.*field.in_attention, layouts[field.slot]);
    } else {
      if (field.in_multihead != nullptr) memory.input(field.name(), problem.*field.in_multihead, layouts[field.slot]);
    }
  }
}

}  // namespace attest
