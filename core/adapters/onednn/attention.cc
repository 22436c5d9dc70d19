// Attention made of oneDNN's primitives, as those who call oneDNN make it: a matmul with the scale as its output scale
// and an additive mask as a binary post-op, softmax, matmul. recipe.sh builds a shared library for each instruction set
// that oneDNN 2.6 has code of its own for, and for its reference code:
//
//     sh core/adapters/onednn/recipe.sh FOLDER
//     attest check --kernel FOLDER/lib/onednn-avx512_core.so
//
// onednn-avx512_core_bf16   matmul is brgemm, with VDPBF16PS for bf16; softmax is JIT code for AVX-512
// onednn-avx512_core        the same, in bf16 with gemm, as that instruction is not there
// onednn-avx2, onednn-sse41 matmul is gemm; softmax is JIT code; f32 alone
// onednn-ref                the first implementation of each primitive whose name begins with "ref", in plain C++
// onednn-*-f32-scores       bf16 with f32 scores between matmul and softmax; the others keep them in bf16
//
// The instruction set is the limit that dnnl::set_max_cpu_isa sets; a processor without it is told so. Where an
// implementation does not take a shape or a post-op, oneDNN itself takes the next one of its list, "ref" at the end.
// ONEDNN_VERBOSE=1 shows which it took.
#include <attest/kernel.h>
#include <attest/known_arguments.h>
#include <omp.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace {

using dnnl::memory;

enum class Path { avx512_core_bf16, avx512_core, avx2, sse41, ref };
constexpr Path path = Path::ATTEST_PATH;
constexpr std::string_view path_name = ATTEST_PATH_NAME;
#ifdef ATTEST_F32_SCORES
constexpr bool f32_scores = true;
#else
constexpr bool f32_scores = false;
#endif
// oneDNN computes bf16 where there is AVX-512, by reference code, too.
constexpr bool has_bf16 = path != Path::avx2 && path != Path::sse41;

dnnl::cpu_isa isa() {
  switch (path) {
    case Path::avx512_core_bf16:
      return dnnl::cpu_isa::avx512_core_bf16;
    case Path::avx512_core:
      return dnnl::cpu_isa::avx512_core;
    case Path::avx2:
      return dnnl::cpu_isa::avx2;
    case Path::sse41:
      return dnnl::cpu_isa::sse41;
    case Path::ref:
      break;
  }
  return dnnl::cpu_isa::all;
}

std::string manifest() {
  // data_types.md of oneDNN: a primitive accumulates floating-point numbers in f32, computes intermediate results and
  // post-ops in f32, and converts once to the format of its output. Softmax takes the maximum of the row, then
  // exponentials and their sum, then multiplies by its reciprocal.
  const std::string f32 =
      R"("base2": false, "split_merge": false, "normalise_first": true, "block": 0, "bias_in_sum": false,)"
      R"( "division_roundings": 2)";
  std::string bf16 = f32 + R"(, "score_sums": "f32", "accumulate": "f32", "prescaled_q": null, "weights": "bf16",)"
                           R"( "weights_in_denominator": false)";
  if (!f32_scores) bf16 += R"(, "stored": {"biased": "bf16"})";
  // VDPBF16PS and VCVTNEPS2BF16 read subnormal numbers as zero, and write zero for them.
  if (path == Path::avx512_core_bf16) bf16 += R"(, "flushes_inputs": true, "flushes_subnormals": true)";
  // The conversion of bfloat16.cpp has "denormal go to zero" in a comment.
  if (path == Path::ref) bf16 += R"(, "flushes_subnormals": true)";

  std::string m = R"({"name": "oneDNN matmul, softmax, matmul, )" + std::string(path_name) +
                  (f32_scores ? ", f32 scores" : "") + R"(", "version": ")" + std::to_string(DNNL_VERSION_MAJOR) + "." +
                  std::to_string(DNNL_VERSION_MINOR) + "." + std::to_string(DNNL_VERSION_PATCH) + R"(", "dtypes": [)";
  if (f32_scores) {
    m += R"("bf16"], "arithmetic": {"bf16": {)" + bf16 + "}";
  } else if (has_bf16) {
    m += R"("f32", "bf16"], "arithmetic": {"f32": {)" + f32 + R"(}, "bf16": {)" + bf16 + "}";
  } else {
    m += R"("f32"], "arithmetic": {"f32": {)" + f32 + "}";
  }
  // The mask has strides as the other tensors have: memory descriptors say them, and no document rules them out.
  m += R"(}, "claims": ["deterministic"], "masks": ["additive"], "mask_conventions": ["post-scale"],)"
       R"( "grouped_query": true, "strides": true,)"
       R"( "limits": {"min_queries": 1, "min_keys": 1, "zero_strides": false}})";
  return m;
}

struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

const dnnl::engine& engine() {
  static const dnnl::engine the_engine = [] {
    omp_set_num_threads(1);
    if (dnnl::set_max_cpu_isa(isa()) != dnnl::status::success)
      throw std::runtime_error("oneDNN takes no limit of its instruction set any more in this process");
    if (path != Path::ref && dnnl::get_effective_cpu_isa() != isa())
      throw Unsupported("this processor does not have " + std::string(path_name));
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return the_engine;
}

memory::data_type format_of(const attest_tensor& t) {
  return t.dtype == ATTEST_BF16 ? memory::data_type::bf16 : memory::data_type::f32;
}

/// A tensor [batch, heads, rows, columns] as oneDNN has it, the heads of a group on an axis of their own where a
/// problem has groups: matmul repeats k and v along it. `heads_to_group` of the tensor's own heads belong to one group.
memory::desc described(const attest_tensor& t, bool has_groups, std::int64_t heads_to_group, bool transposed = false) {
  memory::dims dims{t.shape[0], t.shape[1] / heads_to_group}, strides{t.stride[0], t.stride[1] * heads_to_group};
  if (has_groups) {
    dims.push_back(heads_to_group);
    strides.push_back(t.stride[1]);
  }
  const int rows = transposed ? 3 : 2, columns = transposed ? 2 : 3;
  for (const int axis : {rows, columns}) {
    dims.push_back(t.shape[axis]);
    strides.push_back(t.stride[axis]);
  }
  return {dims, format_of(t), strides};
}

/// The first implementation, or the first one of the reference code.
template <typename Descriptor>
void choose(Descriptor& primitive) {
  while (path == Path::ref && !std::string_view(primitive.impl_info_str()).starts_with("ref"))
    if (!primitive.next_impl()) throw Unsupported("oneDNN has no reference implementation of this primitive");
}

memory of(const memory::desc& description, const attest_tensor& t) {
  return {description, engine(), t.data};
}

void attend(const attest_problem& p, const attest_result& r) {
  if (p.size > offsetof(attest_problem, variants) && p.variants != 0) throw Unsupported("there are no variants here");
  if (p.mask.data != nullptr && p.mask.dtype == ATTEST_BOOL) throw Unsupported("binary post-ops add");
  if (p.causal != ATTEST_CAUSAL_NONE) throw Unsupported("there is no causal form");
  dnnl::stream stream(engine());
  const std::int64_t group = p.q.shape[1] / p.k.shape[1];
  const bool has_groups = group > 1;
  const auto q = described(p.q, has_groups, group), out = described(r.out, has_groups, group);
  const auto k = described(p.k, has_groups, 1, true), v = described(p.v, has_groups, 1);

  memory::dims extents = q.dims();
  extents.back() = p.k.shape[2];
  memory::dims dense(extents.size(), 1);
  for (std::size_t axis = extents.size() - 1; axis > 0; --axis) dense[axis - 1] = dense[axis] * extents[axis];
  const memory::desc scores(extents, f32_scores ? memory::data_type::f32 : format_of(p.q), dense);
  const memory::desc weights(extents, format_of(p.q), dense);

  dnnl::primitive_attr attributes;
  attributes.set_output_scales(0, {static_cast<float>(p.scale)});
  memory::desc mask;
  if (p.mask.data != nullptr) {
    mask = described(p.mask, has_groups, p.mask.shape[1] > 1 ? group : 1);
    dnnl::post_ops add;
    add.append_binary(dnnl::algorithm::binary_add, mask);
    attributes.set_post_ops(add);
  }
  // next_impl() reads the descriptors again, which have to be there still.
  const dnnl::matmul::desc first_of(q, k, scores), third_of(weights, v, out);
  const dnnl::softmax_v2_forward::desc second_of(dnnl::prop_kind::forward_inference, dnnl::algorithm::softmax_accurate,
                                                 scores, weights, static_cast<int>(extents.size()) - 1);
  dnnl::matmul::primitive_desc first(first_of, attributes, engine()), third(third_of, engine());
  dnnl::softmax_v2_forward::primitive_desc second(second_of, engine());
  choose(first);
  choose(second);
  choose(third);

  memory score_memory(scores, engine()), weight_memory(weights, engine());
  std::unordered_map<int, memory> arguments{
      {DNNL_ARG_SRC, of(q, p.q)}, {DNNL_ARG_WEIGHTS, of(k, p.k)}, {DNNL_ARG_DST, score_memory}};
  if (p.mask.data != nullptr) arguments.insert({DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, of(mask, p.mask)});
  dnnl::matmul(first).execute(stream, arguments);
  dnnl::softmax_v2_forward(second).execute(stream, {{DNNL_ARG_SRC, score_memory}, {DNNL_ARG_DST, weight_memory}});
  dnnl::matmul(third).execute(
      stream, {{DNNL_ARG_SRC, weight_memory}, {DNNL_ARG_WEIGHTS, of(v, p.v)}, {DNNL_ARG_DST, of(out, r.out)}});
  stream.wait();
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) const char* attest_kernel_manifest(void) {
  static const std::string text = manifest();
  return text.c_str();
}

__attribute__((visibility("default"))) int attest_kernel_attention(const attest_problem* p, attest_result* r,
                                                                   char* message, size_t message_size) {
  constexpr int failed = 3;
  const int known = attest_known_arguments(p, r, message, message_size);
  if (known != ATTEST_OK) return known;
  try {
    attend(*p, *r);
    return ATTEST_OK;
  } catch (const dnnl::error& error) {
    std::snprintf(message, message_size, "oneDNN: %s", error.what());
    return error.status == dnnl_unimplemented ? ATTEST_UNSUPPORTED : failed;
  } catch (const Unsupported& error) {
    std::snprintf(message, message_size, "%s", error.what());
    return ATTEST_UNSUPPORTED;
  } catch (const std::exception& error) {
    std::snprintf(message, message_size, "%s", error.what());
    return failed;
  }
}
}
