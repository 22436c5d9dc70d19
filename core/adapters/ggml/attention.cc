// Attention of ggml's CPU back end, as llama.cpp calls it, on one path for one format of keys and values. recipe.sh
// builds a shared library for each of these:
//
//     sh core/adapters/ggml/recipe.sh FOLDER
//     attest check --kernel FOLDER/lib/ggml-vec-f16.so
//
// ggml-vec-{f32,f16,bf16}      ggml_flash_attn_ext, row by row: its own choice below 64 queries, but for one query over
//                              512 keys or more. use_ref forces it for all shapes
// ggml-split-{f32,f16}         the same for one query of one sequence: its 512 or more keys are split over two threads
// ggml-tiled-{f32,f16}         the same for 64 queries or more: tiles of 64 queries and 64 keys
// ggml-unfused-{f32,f16,bf16}  mul_mat, soft_max_ext, mul_mat: llama.cpp without flash attention. A product whose sums
//                              have a multiple of 16 terms (8 without AVX-512) is llamafile's, another ggml's own
//
// Queries are f32 in ggml. Those in 16 bits are cast by a node of the graph, and so is an output that is wanted in
// them. ggml has no causal form and no boolean mask: as in llama.cpp, the mask has -inf where a key is hidden.
#include <attest/kernel.h>
#include <attest/known_arguments.h>
#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

enum class Path { vec, split, tiled, unfused };
constexpr Path path = Path::ATTEST_PATH;
constexpr bool flash = path != Path::unfused;
const std::string format = ATTEST_FORMAT;  // of keys and values

std::string arithmetic(bool own_queries) {
  // GGML_PREC_F32 is asked for, which "requires accumulation of the results in F32" (ggml.h), and flash_attn_ext "uses
  // F32 accumulators" (ops.cpp), for V in f16 as well. The normalisation is a reciprocal. tanhf is glibc's, of 2 ulp.
  std::string a = R"("score_sums": "f32", "accumulate": "f32", "max": "running", "base2": false, "bias_in_sum": false,)"
                  R"( "division_roundings": 2, "tanh": {"ulp": 2})";
  // Keys between two maxima; soft_max_ext knows the last one first, and divides the weights before they meet V.
  a += flash ? R"(, "normalise_first": false)" : R"(, "normalise_first": true, "block": 0)";
  if (flash) a += path == Path::tiled ? R"(, "block": 64)" : R"(, "block": 1)";
  a += path == Path::split ? R"(, "split_merge": true)" : R"(, "split_merge": false)";
  // Row by row it calls expf, glibc's of 1 ulp; else mostly ggml_v_expf, of which its comment says 1.95 ulp.
  a += path == Path::vec || path == Path::split ? R"(, "exp_ulp": 1)" : R"(, "exp_ulp": 2)";
  // mul_mat rounds its second operand to the format of the first: q to K's, the weights, once they are summed, to V's.
  // flash_attn_ext rounds q to K's row by row, and nothing in tiles.
  a += flash ? R"(, "weights": "f32")" : R"(, "weights_in_denominator": false, "weights": ")" + format + '"';
  const bool rounds_q = path != Path::tiled && format != "f32" && !own_queries;
  a += R"(, "prescaled_q": )" + (rounds_q ? '"' + format + '"' : "null");
  // flash_attn_ext takes a mask in f16 alone.
  if (flash) a += R"(, "mask_format": "f16")";
  // vdpbf16ps reads and returns subnormals as zero. Where the processor has it ggml's own dot products take 64 terms at
  // a time by it, and llamafile's 32.
  if (format == "bf16" && ggml_cpu_has_avx512_bf16() != 0) {
    const std::string flushes = R"(}, "flushes_inputs": true, "flushes_subnormals": true})";
    if (flash) a += R"(, "paths": [{"when": {"head_dim": ">=64")" + flushes + "]";
    if (!flash)
      a += R"(, "paths": [{"when": {"head_dim": ">=32")" + flushes + R"(, {"when": {"keys": ">=32")" + flushes + "]";
  }
  return "{" + a + "}";
}

std::string manifest() {
  constexpr std::array names{"flash_attn_ext, vector", "flash_attn_ext, split keys", "flash_attn_ext, tiled",
                             "mul_mat, soft_max_ext, mul_mat"};
  std::string m = R"({"name": "ggml )" + std::string(names.at(static_cast<std::size_t>(path))) + ", K and V " + format +
                  R"(", "version": ")" GGML_VERSION_TEXT R"(")";
  if (format == "f32") {
    m += R"(, "dtypes": ["f32"], "arithmetic": {"f32": )" + arithmetic(true) + "}";
  } else {
    const std::string quoted = '"' + format + '"';
    m += R"(, "dtypes": ["f32", )" + quoted + R"(], "kv_dtypes": [)" + quoted + R"(], "out_dtypes": {)" + quoted +
         R"(: ["f32"]}, "arithmetic": {"f32": )" + arithmetic(false) + ", " + quoted + ": " + arithmetic(true) + "}";
  }
  // Row by row, a key whose mask is -inf is left out. More keys are split at other places.
  m += R"(, "claims": ["deterministic")";
  if (path == Path::vec || path == Path::split) m += R"(, "batch-invariant", "ignores-dead-values")";
  if (path == Path::vec) m += R"(, "padding-invariant")";
  // soft_max_ext computes -inf - -inf in a row that sees no key.
  m += flash ? R"(], "fully_masked_row": "zero")" : R"(], "fully_masked_row": "nan")";
  m += R"(, "masks": ["additive", "bool"], "mask_conventions": ["post-scale"], "causal": ["top-left", "bottom-right"])"
       R"(, "grouped_query": true)";
  // A slope multiplies the mask, in which there is room for distances and for -inf, and for no other numbers.
  m += R"(, "variants": {"sink": {}, "softcap": {}, "alibi": {"excludes": ["additive-mask"]}})";
  m += R"(, "limits": {"min_queries": )" + std::string(path == Path::tiled ? "64" : "1");
  if (path == Path::split) m += R"(, "max_queries": 1)";
  m += R"(, "min_keys": )" + std::string(path == Path::split ? "512" : "1");
  return m + R"(}, "tiles": {"queries": [64], "keys": [64, 512]}})";
}

struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

constexpr std::uint32_t our_variants = ATTEST_SOFTCAP | ATTEST_ALIBI | ATTEST_SINK;
constexpr float hidden = -std::numeric_limits<float>::infinity();

std::uint32_t variants_of(const attest_problem& p) {
  return p.size > offsetof(attest_problem, variants) ? p.variants : 0;
}

/// Throws where the problem has something that this file does not know.
void check_known(const attest_problem& p, const attest_result& r) {
  if ((variants_of(p) & ~our_variants) != 0) throw Unsupported("this adapter does not know a variant of the problem");
  std::vector<unsigned char> bytes(std::max<std::size_t>(p.size, sizeof p));
  std::memcpy(bytes.data(), &p, p.size);
  auto& rest = *reinterpret_cast<attest_problem*>(bytes.data());
  rest.variants = 0;  // attest_known_arguments is of the first three alone
  char message[256];
  if (attest_known_arguments(&rest, &r, message, sizeof message) != ATTEST_OK) throw Unsupported(message);
}

ggml_type type_of(std::int32_t dtype) {
  if (dtype == ATTEST_F32) return GGML_TYPE_F32;
  if (dtype == ATTEST_F16) return GGML_TYPE_F16;
  if (dtype == ATTEST_BF16) return GGML_TYPE_BF16;
  throw Unsupported("ggml's attention takes f32, f16 and bf16");
}

/// The slope of head h of so many, as ggml makes it.
float slope_of(std::uint32_t h, std::uint32_t heads, float max_bias) {
  const std::uint32_t below = std::bit_floor(heads);
  if (h < below) return std::pow(std::pow(2.0F, -max_bias / static_cast<float>(below)), static_cast<float>(h + 1));
  const float between = std::pow(2.0F, -max_bias / 2 / static_cast<float>(below));
  return std::pow(between, static_cast<float>(2 * (h - below) + 1));
}

/// max_bias of ggml for these slopes of heads that one node has, where there is one. A mask alone has the slope 1.
std::optional<float> max_bias_of(const float* slopes, std::uint32_t heads) {
  if (heads == 1 && slopes[0] == 1) return 0.0F;
  if (!(slopes[0] > 0 && slopes[0] < 1)) return std::nullopt;
  const float near = -std::log2(slopes[0]) * static_cast<float>(std::bit_floor(heads));
  for (const float max_bias : {near, std::nextafter(near, 0.0F), std::nextafter(near, 2 * near)}) {
    bool all = true;
    for (std::uint32_t h = 0; h < heads; ++h) all = all && slope_of(h, heads, max_bias) == slopes[h];
    if (all) return max_bias;
  }
  return std::nullopt;
}

/// Which entries of the batch and heads of q each node of the graph has, and what it is told of slopes.
struct Parts {
  std::int64_t entries;
  std::vector<float> max_bias;   // of each node of an entry, of one head or of all; 0 without slopes
  std::vector<float> distances;  // of each head: what the mask has for a distance of 1. Empty without slopes
};

Parts parts_of(const attest_problem& p) {
  // ggml splits keys for one sequence alone.
  Parts parts{path == Path::split ? 1 : p.q.shape[0], {0}, {}};
  if ((variants_of(p) & ATTEST_ALIBI) == 0) return parts;
  const auto heads = static_cast<std::size_t>(p.q.shape[1]);
  const auto* const slopes = static_cast<const float*>(p.alibi_slopes.data);
  if (const auto of_all = max_bias_of(slopes, static_cast<std::uint32_t>(heads))) {
    parts.max_bias = {*of_all};
    parts.distances.assign(heads, -1);
    return parts;
  }
  // Heads with slopes of no max_bias in common are nodes of their own. Sign and power of two may stand in the mask.
  parts = {1, {}, {}};
  for (std::size_t h = 0; h < heads; ++h) {
    int exponent = 0;
    const float fraction = std::frexp(std::abs(slopes[h]), &exponent);
    auto max_bias = max_bias_of(slopes + h, 1);
    float distance = -1;
    if (!max_bias) {
      max_bias = slopes[h] == 0 ? 0.0F : max_bias_of(&fraction, 1);
      distance = slopes[h] == 0 ? 0.0F : -std::copysign(std::ldexp(1.0F, exponent), slopes[h]);
    }
    if (!max_bias) throw Unsupported("no max_bias of ggml gives this slope");
    parts.max_bias.push_back(*max_bias);
    parts.distances.push_back(distance);
  }
  return parts;
}

/// The mask that ggml is given, [batch or 1][heads or 1][M][N]; without elements where nothing is hidden or added.
struct Mask {
  std::int64_t batch = 1, heads = 1;
  std::vector<float> entries;
};

float entry_of(const attest_tensor& mask, std::int64_t at) {
  switch (mask.dtype) {
    case ATTEST_BOOL:
      return static_cast<const unsigned char*>(mask.data)[at] != 0 ? 0.0F : hidden;
    case ATTEST_F16:
      return ggml_fp16_to_fp32(static_cast<const ggml_fp16_t*>(mask.data)[at]);
    case ATTEST_BF16:
      return ggml_bf16_to_fp32(static_cast<const ggml_bf16_t*>(mask.data)[at]);
    case ATTEST_F32:
      return static_cast<const float*>(mask.data)[at];
    default:
      throw Unsupported("masks are f32, f16, bf16 or bool");
  }
}

Mask mask_of(const attest_problem& p, const std::vector<float>& distances) {
  const bool slopes = !distances.empty();
  const bool given = p.mask.data != nullptr;
  const std::int64_t rows = p.q.shape[2], keys = p.k.shape[2];
  Mask mask;
  if (!given && !slopes && p.causal == ATTEST_CAUSAL_NONE) return mask;
  if (given) mask.batch = p.mask.shape[0], mask.heads = p.mask.shape[1];
  if (slopes) mask.heads = p.q.shape[1];
  const std::int64_t repeats = given ? mask.heads / p.mask.shape[1] : mask.heads;
  mask.entries.resize(static_cast<std::size_t>(mask.batch * mask.heads * rows * keys));
  const std::int32_t alignment = p.causal != ATTEST_CAUSAL_NONE ? p.causal : slopes ? p.alignment : ATTEST_CAUSAL_NONE;
  const std::int64_t first = alignment == ATTEST_CAUSAL_BOTTOM_RIGHT ? keys - rows : 0;
  for (std::int64_t at = 0; at < static_cast<std::int64_t>(mask.entries.size()); ++at) {
    const std::int64_t j = at % keys, i = at / keys % rows, matrix = at / keys / rows, position = i + first;
    float entry = given ? entry_of(p.mask, ((matrix / repeats) * rows + i) * keys + j) : 0.0F;
    if (p.causal != ATTEST_CAUSAL_NONE && j > position) entry = hidden;
    if (slopes && entry != hidden) {
      entry = distances[static_cast<std::size_t>(matrix % mask.heads)] * static_cast<float>(std::abs(position - j));
      if (flash && ggml_fp16_to_fp32(ggml_fp32_to_fp16(entry)) != entry)
        throw Unsupported("flash_attn_ext has distances in the mask, which is f16 and does not hold this one");
    }
    mask.entries[static_cast<std::size_t>(at)] = entry;
  }
  return mask;
}

struct Release {
  void operator()(ggml_context* context) const { ggml_free(context); }
  void operator()(ggml_gallocr* allocator) const { ggml_gallocr_free(allocator); }
};

ggml_backend_t backend() {
  static const ggml_backend_t cpu = [] {
    const ggml_backend_t made = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(made, path == Path::split ? 2 : 1);
    ggml_backend_cpu_set_use_ref(made, path == Path::vec);
    return made;
  }();
  return cpu;
}

/// The tensors of a graph: views of the problem's own memory.
class Graph {
 public:
  explicit Graph(const attest_problem& p) : p_(p), parts_(parts_of(p)), mask_(mask_of(p, parts_.distances)) {
    const ggml_init_params parameters{
        /*.mem_size =*/(ggml_tensor_overhead() * most_tensors * nodes()) + ggml_graph_overhead_custom(size(), false),
        /*.mem_buffer =*/nullptr, /*.no_alloc =*/true};
    context_.reset(ggml_init(parameters));
  }

  void compute(const attest_result& r) {
    ggml_cgraph* const graph = ggml_new_graph_custom(context_.get(), size(), false);
    std::vector<ggml_tensor*> outputs;
    for (std::size_t node = 0; node < nodes(); ++node) {
      outputs.push_back(output(node, type_of(r.out.dtype)));
      ggml_set_output(outputs.back());
      ggml_build_forward_expand(graph, outputs.back());
    }
    const std::unique_ptr<ggml_gallocr, Release> allocator(ggml_gallocr_new(ggml_backend_cpu_buffer_type()));
    if (!ggml_gallocr_alloc_graph(allocator.get(), graph)) throw Unsupported("ggml has no memory for the graph");
    if (ggml_backend_graph_compute(backend(), graph) != GGML_STATUS_SUCCESS) throw std::runtime_error("ggml failed");
    auto* to = static_cast<char*>(r.out.data);
    for (const ggml_tensor* out : outputs) to = copied(*out, to);
  }

 private:
  static constexpr std::size_t most_tensors = 16;  // of one node of attention
  [[nodiscard]] std::size_t nodes() const {
    return static_cast<std::size_t>(p_.q.shape[0] / parts_.entries) * parts_.max_bias.size();
  }
  [[nodiscard]] std::size_t size() const { return most_tensors * nodes(); }

  /// What a node has of a row-major tensor [batch or 1][heads, kv_heads or 1][rows][columns].
  ggml_tensor* tensor(void* data, ggml_type type, const std::int64_t (&shape)[4], std::size_t node) {
    const std::size_t of_entry = parts_.max_bias.size();
    const std::int64_t entry = static_cast<std::int64_t>(node / of_entry) * shape[0] / p_.q.shape[0];
    const std::int64_t head = static_cast<std::int64_t>(node % of_entry) * shape[1] / p_.q.shape[1];
    ggml_tensor* const t = ggml_new_tensor_4d(context_.get(), type, shape[3], shape[2], of_entry == 1 ? shape[1] : 1,
                                              parts_.entries == 1 ? 1 : shape[0]);
    t->data = static_cast<char*>(data) + (static_cast<std::size_t>((entry * shape[1]) + head) * t->nb[2]);
    return t;
  }
  ggml_tensor* tensor(const attest_tensor& t, std::size_t node) {
    return tensor(t.data, type_of(t.dtype), t.shape, node);
  }
  ggml_tensor* cast(ggml_tensor* t, ggml_type type) { return t->type == type ? t : ggml_cast(context_.get(), t, type); }

  ggml_tensor* output(std::size_t node, ggml_type type) {
    ggml_context* const c = context_.get();
    ggml_tensor* const q = cast(tensor(p_.q, node), GGML_TYPE_F32);
    ggml_tensor* const k = tensor(p_.k, node);
    ggml_tensor* const v = tensor(p_.v, node);
    ggml_tensor* mask = nullptr;
    if (!mask_.entries.empty())
      mask =
          tensor(mask_.entries.data(), GGML_TYPE_F32, {mask_.batch, mask_.heads, p_.q.shape[2], p_.k.shape[2]}, node);
    ggml_tensor* sinks = nullptr;
    if ((variants_of(p_) & ATTEST_SINK) != 0) {
      sinks = tensor(p_.sink.data, GGML_TYPE_F32, {1, p_.q.shape[1], 1, 1}, node);
      sinks = ggml_reshape_1d(c, sinks, sinks->ne[2]);
    }
    const auto scale = static_cast<float>(p_.scale);
    const float softcap = (variants_of(p_) & ATTEST_SOFTCAP) != 0 ? static_cast<float>(p_.softcap) : 0.0F;
    const float max_bias = parts_.max_bias[node % parts_.max_bias.size()];
    if (flash) {
      if (mask != nullptr) mask = cast(mask, GGML_TYPE_F16);
      ggml_tensor* const out = ggml_flash_attn_ext(c, q, k, v, mask, scale, max_bias, softcap);
      ggml_flash_attn_ext_add_sinks(out, sinks);
      ggml_prec_set_acc(out, GGML_PREC_F32);
      return cast(ggml_permute(c, out, 0, 2, 1, 3), type);
    }
    ggml_tensor* scores = ggml_mul_mat(c, k, q);
    ggml_prec_set_acc(scores, GGML_PREC_F32);
    if (softcap != 0) {
      scores = ggml_tanh(c, ggml_scale(c, scores, scale / softcap));
      scores = ggml_scale(c, scores, softcap);
    }
    ggml_tensor* const weights = ggml_soft_max_ext(c, scores, mask, softcap != 0 ? 1.0F : scale, max_bias);
    ggml_soft_max_add_sinks(weights, sinks);
    return cast(ggml_mul_mat(c, ggml_cont(c, ggml_transpose(c, v)), weights), type);
  }

  /// Copies to row-major memory, and returns its end.
  static char* copied(const ggml_tensor& t, char* to) {
    const std::size_t row = static_cast<std::size_t>(t.ne[0]) * ggml_type_size(t.type);
    for (std::int64_t at = 0; at < t.ne[1] * t.ne[2] * t.ne[3]; ++at, to += row) {
      const std::int64_t i = at % t.ne[1], h = at / t.ne[1] % t.ne[2], b = at / t.ne[1] / t.ne[2];
      std::memcpy(to, static_cast<const char*>(t.data) + i * t.nb[1] + h * t.nb[2] + b * t.nb[3], row);
    }
    return to;
  }

  const attest_problem& p_;
  Parts parts_;
  Mask mask_;
  std::unique_ptr<ggml_context, Release> context_;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const char* attest_kernel_manifest() {
  static const std::string text = manifest();
  return text.c_str();
}

extern "C" __attribute__((visibility("default"))) int attest_kernel_attention(const attest_problem* p, attest_result* r,
                                                                              char* message, size_t message_size) {
  try {
    check_known(*p, *r);
    Graph(*p).compute(*r);
    return ATTEST_OK;
  } catch (const Unsupported& why) {
    std::snprintf(message, message_size, "%s", why.what());
    return ATTEST_UNSUPPORTED;
  } catch (const std::exception& why) {
    std::snprintf(message, message_size, "%s", why.what());
    return ATTEST_REJECTED + 1;
  }
}
