// What findings say of ggml's flash_attn_ext, without Attest:  FOLDER/bin/probe
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace {

constexpr int one_thread = 1, four_threads = 4;

struct Call {
  ggml_type format;  // of keys and values
  std::int64_t queries, keys;
  int threads;
  float q, k, v;            // each number of the three
  std::int64_t hidden = 0;  // so many keys, from the first
  bool sink = false;        // of -inf, which is none
};

/// The answer for the first query. One head, one column.
float answer(const Call& call) {
  ggml_context* const c = ggml_init({std::size_t{1} << 24U, nullptr, false});
  ggml_tensor* const q = ggml_new_tensor_4d(c, GGML_TYPE_F32, 1, call.queries, 1, 1);
  ggml_tensor* const k = ggml_new_tensor_4d(c, GGML_TYPE_F32, 1, call.keys, 1, 1);
  ggml_tensor* const v = ggml_new_tensor_4d(c, GGML_TYPE_F32, 1, call.keys, 1, 1);
  ggml_tensor* const mask = ggml_new_tensor_4d(c, GGML_TYPE_F32, call.keys, call.queries, 1, 1);
  ggml_set_f32(q, call.q), ggml_set_f32(k, call.k), ggml_set_f32(v, call.v);
  for (std::int64_t at = 0; at < ggml_nelements(mask); ++at)
    static_cast<float*>(mask->data)[at] = at % call.keys < call.hidden ? -INFINITY : 0.0F;
  ggml_tensor* const out =
      ggml_flash_attn_ext(c, q, ggml_cast(c, k, call.format), ggml_cast(c, v, call.format),
                          ggml_cast(c, mask, GGML_TYPE_F16), /*scale=*/1, /*max_bias=*/0, /*logit_softcap=*/0);
  ggml_prec_set_acc(out, GGML_PREC_F32);
  if (call.sink) {
    ggml_tensor* const sink = ggml_new_tensor_1d(c, GGML_TYPE_F32, 1);
    ggml_flash_attn_ext_add_sinks(out, ggml_set_f32(sink, -INFINITY));
  }
  ggml_cgraph* const graph = ggml_new_graph(c);
  ggml_build_forward_expand(graph, out);
  ggml_graph_compute_with_ctx(c, graph, call.threads);
  const float first = static_cast<const float*>(out->data)[0];
  ggml_free(c);
  return first;
}

}  // namespace

int main() {
  constexpr ggml_type f16 = GGML_TYPE_F16, f32 = GGML_TYPE_F32;
  std::printf("4096 equal keys, values of 1:        f16 %g, four threads %g, 64 queries %g, f32 %g\n",
              answer({f16, 1, 4096, one_thread, 0, 0, 1}), answer({f16, 1, 4096, four_threads, 0, 0, 1}),
              answer({f16, 64, 4096, one_thread, 0, 0, 1}), answer({f32, 1, 4096, one_thread, 0, 0, 1}));
  std::printf("16384 equal keys, values of 1:       f16 %g, four threads %g\n",
              answer({f16, 1, 16384, one_thread, 0, 0, 1}), answer({f16, 1, 16384, four_threads, 0, 0, 1}));
  std::printf("two equal keys, values of 40000:     f16 %g, 64 queries %g, f32 %g\n",
              answer({f16, 1, 2, one_thread, 0, 0, 40000}), answer({f16, 64, 2, one_thread, 0, 0, 40000}),
              answer({f32, 1, 2, one_thread, 0, 0, 40000}));
  std::printf("q = 70000, k = 0, values of 1:       f16 %g, 64 queries %g, f32 %g\n",
              answer({f16, 1, 2, one_thread, 70000, 0, 1}), answer({f16, 64, 2, one_thread, 70000, 0, 1}),
              answer({f32, 1, 2, one_thread, 70000, 0, 1}));
  std::printf("no key is seen, a sink of -inf:      one query %g, 64 queries %g, no sink %g\n",
              answer({f32, 1, 2, one_thread, 0, 0, 1, 2, true}), answer({f32, 64, 2, one_thread, 0, 0, 1, 2, true}),
              answer({f32, 1, 2, one_thread, 0, 0, 1, 2, false}));
  std::printf("keys 128 to 511 are seen, the same:  four threads %g, one thread %g, no sink %g\n",
              answer({f32, 1, 512, four_threads, 0, 0, 1, 128, true}),
              answer({f32, 1, 512, one_thread, 0, 0, 1, 128, true}),
              answer({f32, 1, 512, four_threads, 0, 0, 1, 128, false}));
}
