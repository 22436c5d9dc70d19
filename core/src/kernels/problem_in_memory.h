// The inputs of a problem, put into guarded memory in the layouts of their case.
#pragma once

#include "attest/kernel.h"
#include "attest/strides.h"
#include "guarded_memory.h"

namespace attest {

/// Adds the tensors that are present; their views are those of `problem`.
inline void add_inputs(GuardedMemory& memory, attest_problem& p, const Layouts& layouts) {
  memory.input("q", p.q, layouts[Slot::q]);
  memory.input("k", p.k, layouts[Slot::k]);
  memory.input("v", p.v, layouts[Slot::v]);
  memory.input("mask", p.mask, layouts[Slot::mask]);
}

inline void add_inputs(GuardedMemory& memory, attest_multihead_problem& p, const Layouts& layouts) {
  memory.input("q", p.q, layouts[Slot::q]);
  memory.input("k", p.k, layouts[Slot::k]);
  memory.input("v", p.v, layouts[Slot::v]);
  memory.input("w_q", p.w_q, layouts[Slot::w_q]);
  memory.input("w_k", p.w_k, layouts[Slot::w_k]);
  memory.input("w_v", p.w_v, layouts[Slot::w_v]);
  memory.input("b_q", p.b_q, layouts[Slot::b_q]);
  memory.input("b_k", p.b_k, layouts[Slot::b_k]);
  memory.input("b_v", p.b_v, layouts[Slot::b_v]);
  memory.input("w_o", p.w_o, layouts[Slot::w_o]);
  memory.input("b_o", p.b_o, layouts[Slot::b_o]);
  memory.input("bias_k", p.bias_k, layouts[Slot::bias_k]);
  memory.input("bias_v", p.bias_v, layouts[Slot::bias_v]);
  memory.input("mask", p.mask, layouts[Slot::mask]);
}

}  // namespace attest
