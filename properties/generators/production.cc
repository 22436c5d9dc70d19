#include "properties/generators/production.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "properties/generators/marked_keys.h"

namespace attest {
namespace {

/// A model's attention, as its paper or its published configuration has it.
struct Model {
  std::string_view name;
  std::int32_t heads, kv_heads, dk, dv;
  std::int32_t queries, keys;  ///< of a whole prompt, or of cross attention
  bool causal;
};

constexpr Model models[] = {
    {"GPT-2 (Radford et al. 2019)", 12, 12, 64, 64, 1024, 1024, true},
    {"BERT base (Devlin et al. 2019)", 12, 12, 64, 64, 512, 512, false},
    {"ViT-B/16 (Dosovitskiy et al. 2021): 196 patches and a class token", 12, 12, 64, 64, 197, 197, false},
    {"ViT-H/14 (Dosovitskiy et al. 2021)", 16, 16, 80, 80, 257, 257, false},
    {"CLIP's text model (Radford et al. 2021)", 8, 8, 64, 64, 77, 77, true},
    {"Whisper large (Radford et al. 2022): encoder", 20, 20, 64, 64, 1500, 1500, false},
    {"Whisper large: the decoder's cross attention", 20, 20, 64, 64, 448, 1500, false},
    {"Stable Diffusion 1.5 (Rombach et al. 2022): 64x64 latents", 8, 8, 40, 40, 4096, 4096, false},
    {"Stable Diffusion 1.5: 8x8 latents on 77 words", 8, 8, 160, 160, 64, 77, false},
    {"GPT-NeoX-20B (Black et al. 2022)", 64, 64, 96, 96, 2048, 2048, true},
    {"Falcon 7B (Almazrouei et al. 2023): one head of keys", 71, 1, 64, 64, 2048, 2048, true},
    {"Llama 3 8B (Grattafiori et al. 2024)", 32, 8, 128, 128, 8192, 8192, true},
    {"Llama 3 70B (Grattafiori et al. 2024)", 64, 8, 128, 128, 8192, 8192, true},
    {"Qwen2.5 0.5B (Qwen Team 2024): seven heads a group", 14, 2, 64, 64, 32768, 32768, true},
    {"Qwen2.5 7B (Qwen Team 2024): seven heads a group", 28, 4, 128, 128, 32768, 32768, true},
    {"Gemma 2B (Gemma Team 2024)", 8, 1, 256, 256, 8192, 8192, true},
    {"Gemma 2 9B (Gemma Team 2024)", 16, 8, 256, 256, 8192, 8192, true},
    {"Phi-3 mini (Abdin et al. 2024)", 32, 32, 96, 96, 4096, 4096, true},
    {"DeepSeek-V2 (DeepSeek-AI 2024): 128 columns and 64 with positions against 128", 128, 128, 192, 128, 4096, 4096,
     true},
    {"DeepSeek-V2: one token on its latents, 512 and 64 with positions", 128, 1, 576, 512, 1, 4096, false}};

/// A model as it is trained: weights are dropped, at the rate of its paper or its published configuration.
struct TrainedModel {
  std::string_view name;
  std::int32_t heads, d, tokens;
  bool causal;
  double rate;
};

constexpr TrainedModel trained_models[] = {
    {"BERT base (Devlin et al. 2019)", 12, 64, 512, false, 0.1},
    {"BERT large (Devlin et al. 2019)", 16, 64, 512, false, 0.1},
    {"GPT-2 (Radford et al. 2019; openai-community/gpt2: \"attn_pdrop\")", 12, 64, 1024, true, 0.1},
    {"GPT-2 medium (openai-community/gpt2-medium)", 16, 64, 1024, true, 0.1}};

/// A model with windows: a row sees so many keys, its own among them, in its local layers where it has others.
struct WindowedModel {
  std::string_view name;
  std::int32_t group, dk;  ///< heads to a key-value head
  std::int32_t window;     ///< "sliding_window" of the configuration that is published with its weights
  bool sinks = false;      ///< each head has a learned one
  double softcap = 0;      ///< "attn_logit_softcapping"
};

/// Laid over shapes that are there without them: a kernel that lists no windows is sent these as it ever was.
constexpr WindowedModel windowed_models[] = {
    {"Mistral 7B v0.1 (Jiang et al. 2023; mistralai/Mistral-7B-v0.1)", 4, 128, 4096},
    {"Phi-3 mini (Abdin et al. 2024; microsoft/Phi-3-mini-4k-instruct)", 1, 96, 2047},
    {"StarCoder2 3B and 15B (Lozhkov et al. 2024; bigcode/starcoder2-3b)", 12, 128, 4096},
    {"StarCoder2 7B (bigcode/starcoder2-7b)", 9, 128, 4096},
    {"Gemma 2 2B and 9B (Gemma Team 2024; google/gemma-2-9b)", 2, 256, 4096, false, 50},
    {"Gemma 2 27B (google/gemma-2-27b)", 2, 128, 4096, false, 50},
    {"Gemma 3 1B (Gemma Team 2025; google/gemma-3-1b-pt)", 4, 256, 512},
    {"Gemma 3 4B and 12B (google/gemma-3-4b-pt)", 2, 256, 1024},
    {"Gemma 3 27B (google/gemma-3-27b-pt)", 2, 128, 1024},
    {"GPT-OSS 20B and 120B (OpenAI 2025; openai/gpt-oss-20b)", 8, 64, 128, true}};

/// A model with the slopes of as many heads as it has.
struct SlopedModel {
  std::string_view name;
  std::int32_t heads, dk;
};

/// What a device has of their heads is laid over shapes that are there without them, as windows are.
constexpr SlopedModel sloped_models[] = {
    {"BLOOM 176B (BigScience Workshop 2022; bigscience/bloom): no power of two", 112, 128},
    {"BLOOM 7.1B (bigscience/bloom-7b1)", 32, 128},
    {"BLOOM 560M (bigscience/bloom-560m)", 16, 64},
    {"MPT-7B (MosaicML NLP Team 2023; mosaicml/mpt-7b)", 32, 128},
    {"MPT-30B (mosaicml/mpt-30b)", 64, 112},
    {"Baichuan-13B (Baichuan 2023; baichuan-inc/Baichuan-13B-Base): no power of two", 40, 128}};

/// Multiplications of the problem, in double, as whole numbers would overflow.
double products_of(const Recipe& r) {
  const auto d = [](std::int32_t extent) { return static_cast<double>(std::max(extent, 1)); };
  const double attention = d(r.heads) * d(r.queries) * d(r.keys) * (d(r.dk) + d(r.dv));
  if (r.operation != Operation::multihead) return d(r.batch) * attention;
  const double of_queries = d(r.c_q) * d(r.dk) + d(r.dv) * d(r.d_o), of_keys = d(r.c_k) * d(r.dk) + d(r.c_v) * d(r.dv);
  return d(r.batch) * (attention + d(r.heads) * (d(r.queries) * of_queries + d(r.keys) * of_keys));
}

template <class Value, std::size_t n>
Value one_of(Stream& stream, const std::array<Value, n>& values) {
  return values[static_cast<std::size_t>(stream.below(static_cast<std::int64_t>(n)))];
}

std::int32_t between(Stream& stream, std::int64_t low, std::int64_t high) {
  return static_cast<std::int32_t>(stream.between(low, high));
}

/// A length at the end of one to four tiles, one beyond or short of it, or in the midst of the tile that follows.
std::int32_t edge(Stream& stream, std::int32_t most) {
  std::int32_t tile = one_of(stream, std::array{16, 32, 64, 64, 128, 128, 256});
  while (tile > 16 && tile >= most) tile /= 2;
  const std::int32_t tiles = between(stream, 1, std::clamp(most / tile, 1, 4));
  const std::int32_t beyond = stream.one_in(4) ? between(stream, 2, tile - 2) : between(stream, -1, 1);
  return tile * tiles + beyond;
}

/// `groups` key-value heads, each with `group` heads.
void set_heads(Recipe& r, std::int32_t groups, std::int32_t group) {
  r.kv_heads = groups;
  r.heads = groups * group;
}

void set_widths(Recipe& r, std::int32_t dk, std::int32_t dv) {
  r.dk = dk;
  r.dv = dv;
}

/// Brings a recipe to at most so many multiplications by shorter lengths, the longer first; none shorter than `least`.
void shorten(Recipe& r, double most_products, std::int32_t least = 1) {
  while (products_of(r) > most_products && std::max(r.queries, r.keys) > least) {
    std::int32_t& longer = r.queries > r.keys ? r.queries : r.keys;
    longer = std::max(least, longer - std::max(1, longer / 8));
  }
}

/// The same by fewer batch entries and key-value heads first, then fewer columns, then fewer heads to a group, and
/// shorter lengths at last. No fewer columns than `fewest_columns`.
void fit(Recipe& r, double most_products, std::int32_t fewest_columns) {
  const auto over = [&] { return products_of(r) > most_products; };
  while (over() && r.batch > 2) r.batch = (r.batch + 1) / 2;
  while (over() && r.kv_heads > 2) set_heads(r, (r.kv_heads + 1) / 2, r.heads / r.kv_heads);
  while (over() && std::max(r.dk, r.dv) > fewest_columns) set_widths(r, (r.dk + 1) / 2, (r.dv + 1) / 2);
  if (over()) r.batch = 1;
  while (over() && r.kv_heads > 1) set_heads(r, (r.kv_heads + 1) / 2, r.heads / r.kv_heads);
  while (over() && r.heads > 1) r.heads = (r.heads + 1) / 2;
  shorten(r, most_products);
}

constexpr std::int32_t longest_edge = 400, all_columns = std::numeric_limits<std::int32_t>::max();

// The classes of shapes. Each draws from its own ranges, and `fit` cuts what is dear. `turn` counts the cases of a
// class, for what each run is to have and few of them are enough.

void both_lengths_at_edges(Recipe& r, Stream& stream, std::int64_t turn) {
  r.queries = edge(stream, longest_edge);
  r.keys = edge(stream, longest_edge);
  if (stream.one_in(3)) r.batch = 2;
  set_heads(r, between(stream, 1, 2), between(stream, 1, 2));
  const std::int32_t width = one_of(stream, std::array{16, 32, 64, 64});
  set_widths(r, width, width);
  if (turn % 2 == 0) return;
  // Two batch entries with a mask each (draw_kinds), as padded batches have, over several tiles.
  r.batch = 2;
  r.queries = edge(stream, longest_edge / 2);
  r.keys = edge(stream, longest_edge / 2);
  set_heads(r, 1, 1);
  r.mask_per_batch = true;
}

void prompt(Recipe& r, Stream& stream, [[maybe_unused]] std::int64_t turn) {
  r.queries = r.keys = edge(stream, longest_edge);
  if (stream.one_in(3)) r.batch = 2;
  set_heads(r, between(stream, 1, 2), between(stream, 1, 2));
  const std::int32_t width = one_of(stream, std::array{32, 64, 128});
  set_widths(r, width, width);
  if (!stream.one_in(3)) r.causal = Causal::top_left;
}

/// One query, or a few that were guessed, on a long cache.
void decoding(Recipe& r, Stream& stream, std::int64_t turn) {
  r.queries = one_of(stream, std::array{1, 1, 1, 1, 2, 4, 5, 8});
  r.keys = (1 << between(stream, 9, 13)) + (stream.one_in(3) ? between(stream, 1, 500) : between(stream, -1, 1));
  const std::int32_t width = one_of(stream, std::array{16, 64, 128});
  set_widths(r, width, width);
  set_heads(r, between(stream, 1, 4), one_of(stream, std::array{1, 1, 3, 4, 7, 8}));
  if (stream.one_in(2)) r.causal = Causal::bottom_right;
  if (turn % 4 != 1) return;
  // Beyond what 16 bits count.
  r.queries = 1;
  r.keys = (1 << 16) + between(stream, -1, 2048);
  set_heads(r, 1, 1);
  set_widths(r, 8, 4);
}

/// A part of a prompt on all that came before it.
void chunk(Recipe& r, Stream& stream, [[maybe_unused]] std::int64_t turn) {
  r.queries = edge(stream, 160);
  r.keys = r.queries + edge(stream, 512);
  set_heads(r, between(stream, 1, 2), between(stream, 1, 4));
  const std::int32_t width = one_of(stream, std::array{32, 64, 128});
  set_widths(r, width, width);
  if (!stream.one_in(4)) r.causal = Causal::bottom_right;
}

/// The widths of heads that libraries have kernels for, and those of models whose values are narrower than their keys.
void widths(Recipe& r, Stream& stream, [[maybe_unused]] std::int64_t turn) {
  r.dk = one_of(stream, std::array{40, 64, 72, 80, 96, 112, 120, 128, 160, 192, 256});
  r.dv = r.dk;
  if (r.dk == 192 && stream.one_in(2)) r.dv = 128;
  if (stream.one_in(6)) r.dv = one_of(stream, std::array{32, 64, 96, 128});
  r.queries = edge(stream, 80);
  r.keys = edge(stream, 140);
  set_heads(r, 1, between(stream, 1, 2));
}

/// As many heads as models have, three and seven to a group among them, more than a vector or a warp holds, and several
/// batch entries.
void many_heads(Recipe& r, Stream& stream, std::int64_t turn) {
  set_heads(r, between(stream, 1, 8), one_of(stream, std::array{1, 2, 3, 3, 4, 7, 8, 12, 20, 40}));
  r.batch = one_of(stream, std::array{1, 1, 2, 4, 5, 8});
  r.queries = edge(stream, 33);
  r.keys = edge(stream, 66);
  set_widths(r, 8 * between(stream, 1, 2), 8);
  if (turn % 4 == 1) {
    // A batch as it is served: more sequences than one block of threads takes, each of them short.
    r.batch = between(stream, 33, 140);
    set_heads(r, between(stream, 1, 2), between(stream, 1, 2));
    r.queries = between(stream, 1, 9);
    r.keys = edge(stream, 40);
  }
  if (turn % 8 != 3) return;
  // More heads in all than 16 bits count.
  r.batch = 256;
  set_heads(r, 257, 1);
  r.queries = 1;
  r.keys = 2;
  set_widths(r, 2, 2);
}

/// More queries than keys, by a tile and more, as in cross attention.
void more_queries(Recipe& r, Stream& stream, std::int64_t turn) {
  r.keys = edge(stream, 140);
  r.queries = r.keys + edge(stream, 200);
  set_heads(r, between(stream, 1, 2), between(stream, 1, 2));
  set_widths(r, 32, 32);
  if (stream.one_in(2)) r.causal = stream.one_in(4) ? Causal::bottom_right : Causal::top_left;
  switch (turn % 4) {
    case 0:
      // Rows that see nothing, over as many keys as some kernels split.
      r.causal = Causal::bottom_right;
      r.keys = 256 + edge(stream, longest_edge - 256);
      r.queries = r.keys + edge(stream, 70);
      set_heads(r, 1, between(stream, 1, 2));
      return;
    case 1:
      // A group whose heads are laid out as rows: more of these than 16 bits count.
      r.keys = between(stream, 5, 7);
      r.queries = (1 << 13) + between(stream, 0, 40);
      set_heads(r, 1, 8);
      set_widths(r, 8, 8);
      return;
    case 2:
      // A head of q, and of the output, with more numbers than 16 bits count.
      set_widths(r, 64, 64);
      r.keys = edge(stream, 40);
      r.queries = (1 << 10) + between(stream, -1, 200);
      set_heads(r, 1, 1);
      return;
    default:
      return;
  }
}

/// A model's attention to a whole prompt, to a chunk of it, to one token or to a few, on two key-value heads at most.
void of_a_model(Recipe& r, Stream& stream) {
  const Model& model = models[stream.below(std::ssize(models))];
  set_heads(r, std::min(model.kv_heads, 2), model.heads / model.kv_heads);
  set_widths(r, model.dk, model.dv);
  r.queries = model.queries;
  r.keys = model.keys;
  r.causal = model.causal ? Causal::top_left : Causal::none;
  const std::int64_t phase = stream.below(model.causal ? 4 : 1);
  if (phase == 0) return;
  r.causal = Causal::bottom_right;
  r.queries = phase == 1 ? 1 : phase == 2 ? between(stream, 4, 8) : one_of(stream, std::array{64, 128, 512});
  r.keys = std::min(model.keys, std::int32_t{1} << between(stream, 10, 15));
}

/// A model's attention to a whole text as it is trained: a head's mask of dropout has more places than 16 bits count.
/// Heads beyond two are the same again.
void of_training(Recipe& r, Stream& stream) {
  const TrainedModel& model = trained_models[stream.below(std::ssize(trained_models))];
  set_heads(r, std::min(model.heads, 2), 1);
  set_widths(r, model.d, model.d);
  r.queries = r.keys = model.tokens;
  r.causal = model.causal ? Causal::top_left : Causal::none;
  r.trained_rate = model.rate;
}

/// One production case in sixteen, and of a row's first two the other, so that a short run has one.
bool is_of_both_lengths(std::int64_t number) {
  return number % 16 == 1;
}

/// As many queries as keys and more of both than a block of threads has, in one narrow head: of gradients, whose
/// columns are sums over all queries and whose rows are sums over all keys.
void both_lengths_large(Recipe& r, Stream& stream) {
  set_heads(r, 1, 1);
  set_widths(r, 8, 8);
  r.queries = between(stream, 513, 1100);
  r.keys = stream.one_in(3) ? r.queries : between(stream, 513, 1100);
  if (stream.one_in(3)) r.causal = stream.one_in(2) ? Causal::top_left : Causal::bottom_right;
}

constexpr std::array classes{both_lengths_at_edges, prompt, decoding, chunk, widths, many_heads, more_queries};

/// What a tile does shows where scores change along the keys, where none outweighs the others, and where one tile does.
constexpr std::array score_kinds{ScoreKind::gaussian,       ScoreKind::gaussian,      ScoreKind::gaussian,
                                 ScoreKind::gaussian,       ScoreKind::rising,        ScoreKind::rising,
                                 ScoreKind::rising,         ScoreKind::dominant_tile, ScoreKind::dominant_tile,
                                 ScoreKind::gaussian_tenth, ScoreKind::gaussian_ten,  ScoreKind::zero_queries,
                                 ScoreKind::spread,         ScoreKind::dominant,      ScoreKind::duplicate_keys};
constexpr std::array value_kinds{ValueKind::gaussian, ValueKind::gaussian,   ValueKind::gaussian,
                                 ValueKind::gaussian, ValueKind::gaussian,   ValueKind::integers,
                                 ValueKind::one_hot,  ValueKind::ones,       ValueKind::half_ones,
                                 ValueKind::heavy,    ValueKind::cancelling, ValueKind::huge_offset};
constexpr std::array mask_kinds{MaskKind::random,     MaskKind::first_block, MaskKind::middle_block,
                                MaskKind::last_block, MaskKind::padding,     MaskKind::padding,
                                MaskKind::causal,     MaskKind::bias,        MaskKind::alibi};

void draw_kinds(Recipe& r, Stream& stream) {
  // A merge of parts of the keys shows where the parts differ.
  r.scores = r.queries <= 8 && stream.one_in(2) ? ScoreKind::rising : one_of(stream, score_kinds);
  r.values = one_of(stream, value_kinds);
  r.scale = ScaleKind::inverse_root;
  r.override_count = 0;
  const bool own_masks = r.mask_per_batch && r.batch > 1;
  const bool masked = own_masks || stream.one_in(r.causal == Causal::none ? 2 : 5);
  r.mask = masked ? one_of(stream, mask_kinds) : MaskKind::none;
  r.boolean_mask = stream.one_in(2);
  r.mask_per_batch = own_masks || stream.one_in(2);
  r.mask_per_head = stream.one_in(4);
  r.convention = MaskConvention::post_scale;
}

/// The multiplications that a case of a class may ask for. A model's, of the definition, by its number.
constexpr double products_of_definition = 0x1p23;
constexpr double most_products(LargeFor what) {
  return what == LargeFor::law ? 0x1p19 : what == LargeFor::gradients ? 0x1p22 : products_of_definition;
}
constexpr double products_of_large_gradients = 0x1p24;
constexpr std::array products_of_models{0x1p24, 0x1p26, 0x1p25, 0x1p26, 0x1p24, 0x1p28};

/// The same of multi-head attention. Rows of scores so large that double-doubles do not tell them apart, or that a
/// narrow format knows nothing of them, are enclosed in balls, of which a product costs some fifty times as much.
double most_multihead_products(const Recipe& r, LargeFor what, double of_definition) {
  const bool wide = r.dtype == DType::f32 || r.dtype == DType::f64;
  const bool large_scores = r.matrices == MatrixKind::gaussian_ten || r.matrices == MatrixKind::integers ||
                            r.matrices == MatrixKind::powers_of_two;
  const bool in_balls = r.matrices == MatrixKind::huge || (large_scores && !wide);
  return in_balls || what == LargeFor::law ? 0x1p18 : of_definition;
}

/// A layer of a model that is small enough for many of its tokens: heads and the width of each.
struct Layer {
  std::int32_t heads, width;
};
constexpr std::array<Layer, 8> layers{{{2, 32}, {4, 32}, {6, 32}, {8, 32}, {12, 16}, {2, 64}, {4, 64}, {2, 128}}};

/// Of a law with narrower heads, so that there are as many tokens.
void of_a_layer(Recipe& r, Stream& stream, LargeFor what) {
  Layer layer = one_of(stream, layers);
  if (what == LargeFor::law) layer.width /= 4;
  r.batch = 1;
  set_heads(r, layer.heads, 1);
  set_widths(r, layer.width, stream.one_in(4) ? layer.width / 2 : layer.width);
  r.c_q = r.c_k = r.c_v = r.d_o = layer.heads * layer.width;
  // A decoder's input may be of another width than what it attends to.
  if (stream.one_in(3)) r.c_k = r.c_v = r.c_q / 2;
  r.queries = stream.one_in(4) ? 1 : edge(stream, 130);
  r.keys = edge(stream, 130);
  shorten(r, most_multihead_products(r, what, products_of_definition));
}

/// That of the given shapes whose turn it is.
void give_shape(Recipe& r, const Shapes& shapes, std::int64_t number) {
  const Extents& e = shapes.given[static_cast<std::size_t>(number) % shapes.given.size()];
  const auto small = [](std::int64_t extent) { return static_cast<std::int32_t>(extent); };
  r.batch = small(e.batch), r.heads = small(e.heads), r.kv_heads = small(e.kv_heads);
  r.queries = small(e.queries), r.keys = small(e.keys), r.dk = small(e.dk), r.dv = small(e.dv);
}

constexpr std::int32_t narrow_token = 8;

/// Of given heads, tokens as wide as all of them together, as models have them: halved until the projections cost no
/// more than attention itself, or than a case may that was drawn.
void set_tokens(Recipe& r, double most_products) {
  const auto products_with = [&r](std::int32_t width) {
    r.c_q = r.c_k = r.c_v = r.d_o = width;
    return products_of(r);
  };
  const double most = std::max(most_products, 2 * products_with(0));
  constexpr std::int64_t widest = std::int64_t{1} << 16;
  auto width = static_cast<std::int32_t>(std::clamp<std::int64_t>(std::int64_t{r.heads} * r.dk, narrow_token, widest));
  while (products_with(width) > most && width > narrow_token) width = std::max(width / 2, narrow_token);
}

}  // namespace

std::string to_string(const Shapes& shapes) {
  if (shapes.large == LargeCases::none) return {};
  std::string text(name_of(shapes.large));
  for (const Extents& e : shapes.given)
    text += fmt::format(" {},{},{},{},{},{},{}", e.batch, e.heads, e.kv_heads, e.queries, e.keys, e.dk, e.dv);
  return text;
}

std::optional<std::int64_t> production_number(const Shapes& shapes, std::int64_t k, std::int64_t period) {
  if (shapes.large == LargeCases::none || k < 0) return std::nullopt;
  if (shapes.large == LargeCases::all) return k;
  const std::int64_t number = k / period;
  const bool is_one = k % period == Stream(static_cast<std::uint64_t>(number)).below(period);
  return is_one ? std::optional(number) : std::nullopt;
}

LargeFor large_for(std::int64_t period, std::int64_t number) {
  if (period == period_of_definition) return LargeFor::definition;
  if (period != period_of_gradients) return LargeFor::law;
  const bool larger = is_of_both_lengths(number) || Stream(static_cast<std::uint64_t>(number) ^ 0x67726164U).one_in(4);
  return larger ? LargeFor::gradients : LargeFor::law;
}

void make_production(Recipe& r, const Shapes& shapes, std::int64_t number, LargeFor what) {
  const bool is_law = what == LargeFor::law;
  Stream stream(r.seed ^ 0x70726f64U);
  r.large = true;
  r.causal = Causal::none;
  r.mask_per_batch = false;
  if (!shapes.given.empty()) {
    give_shape(r, shapes, number);
    r.causal = static_cast<Causal>(stream.below(3));
  } else {
    constexpr std::int64_t kinds = std::ssize(classes) + 1;
    const auto which = static_cast<std::size_t>(number % kinds);
    const std::int64_t turn = number / kinds;
    r.batch = 1;
    if (what == LargeFor::gradients && is_of_both_lengths(number)) {
      both_lengths_large(r, stream);
      shorten(r, products_of_large_gradients);
    } else if (which < classes.size()) {
      classes[which](r, stream, turn);
      // What many heads show in a law or in gradients, they show of short sequences.
      if (classes[which] == many_heads && what != LargeFor::definition) shorten(r, most_products(what), /*least=*/4);
      // A law is about rows and keys: of these it is to have many rather than columns.
      const std::int32_t fewest = classes[which] == widths ? all_columns : is_law ? 4 : 16;
      fit(r, most_products(what), fewest);
    } else {
      // A law's cases are too small for what training shows.
      if (Stream apart(r.seed ^ 0x747261696eU); !is_law && apart.one_in(4)) {
        of_training(r, apart);
      } else {
        of_a_model(r, stream);
      }
      const double most = products_of_models[static_cast<std::size_t>(turn) % products_of_models.size()];
      fit(r, what == LargeFor::definition ? most : most_products(what), all_columns);
    }
  }
  draw_kinds(r, stream);
  // A few distinct queries stand for all: each row of the answer is still compared with what is exact for it.
  if (stream.one_in(2) || products_of(r) > products_of_definition) r.distinct_queries = distinct_queries;
  if (r.dv >= 4 && r.keys >= fewest_marked && stream.one_in(2)) mark_keys(r, stream);
}

bool give_model_window(Recipe& r, Stream& stream) {
  std::vector<const WindowedModel*> shorter, alike;
  for (const WindowedModel& model : windowed_models) {
    if (model.window >= r.keys) continue;
    shorter.push_back(&model);
    if (model.group == r.heads / std::max(r.kv_heads, 1) || model.dk == r.dk) alike.push_back(&model);
  }
  const auto& from = alike.empty() ? shorter : alike;
  if (from.empty()) return false;
  const WindowedModel& model = *from[static_cast<std::size_t>(stream.below(std::ssize(from)))];
  argument_in(r.arguments, &Problem::window_left) = model.window - 1;
  r.sinks = r.sinks || model.sinks;
  if (model.softcap > 0) argument_in(r.arguments, &Problem::softcap) = model.softcap;
  // All of them look back alone, from the last of the keys that there are.
  if (r.causal != Causal::none) return true;
  argument_in(r.arguments, &Problem::window_right) = 0;
  argument_in(r.arguments, &Problem::alignment) = static_cast<double>(Causal::bottom_right);
  return true;
}

std::int64_t heads_of_sloped_model(std::int64_t dk, Stream& stream) {
  std::vector<const SlopedModel*> any, alike;
  for (const SlopedModel& model : sloped_models) {
    any.push_back(&model);
    if (model.dk == dk) alike.push_back(&model);
  }
  const auto& from = alike.empty() ? any : alike;
  return from[static_cast<std::size_t>(stream.below(std::ssize(from)))]->heads;
}

std::vector<Extents> with_production_lengths(const Extents& heads, bool decodes) {
  Stream stream(0x6c656e67U);
  std::vector<Extents> shapes;
  for (int number = 0; number < 3; ++number) {
    Recipe r;
    (decodes ? decoding : number < 2 ? prompt : chunk)(r, stream, /*turn=*/0);
    Extents e = heads;
    e.batch = number + 1;
    e.queries = decodes ? 1 : r.queries;
    e.keys = r.keys;
    shapes.push_back(e);
  }
  return shapes;
}

void make_multihead_production(Recipe& r, const Shapes& shapes, std::int64_t number, LargeFor what) {
  Stream stream(r.seed ^ 0x70726f64U);
  r.large = true;
  if (!shapes.given.empty()) {
    give_shape(r, shapes, number);
    set_heads(r, r.heads, 1);
    set_tokens(r, most_multihead_products(r, what, products_of_definition));
    return;
  }
  r.batch = one_of(stream, std::array{1, 1, 2, 4});
  std::int32_t width = one_of(stream, std::array{4, 8, 16});
  r.c_q = r.c_k = r.c_v = r.d_o = narrow_token;
  switch (number % 6) {
    case 0:
      // Lengths beyond a tile.
      set_heads(r, between(stream, 1, 3), 1);
      r.queries = edge(stream, 130);
      r.keys = edge(stream, 130);
      break;
    case 1:
      // Heads of a model's width over several tiles.
      width = one_of(stream, std::array{32, 64, 64, 128});
      r.batch = 1;
      set_heads(r, between(stream, 1, 2), 1);
      r.queries = edge(stream, longest_edge);
      r.keys = edge(stream, longest_edge);
      break;
    case 2:
    case 5:
      // Heads and tokens of a model: all heads beside one another are as wide as a token.
      return of_a_layer(r, stream, what);
    case 3:
      // Heads and batch entries beyond a block of them.
      set_heads(r, one_of(stream, std::array{5, 6, 8, 9, 12, 16, 20}), 1);
      r.batch = one_of(stream, std::array{1, 2, 3, 5, 8, 9});
      r.queries = between(stream, 1, 8);
      r.keys = between(stream, 2, 8);
      // And more keys than a tile has.
      if (stream.one_in(3)) r.batch = 1, r.keys = edge(stream, 130);
      break;
    default:
      // Tokens wider than a vector or a block of columns, and of a width that ends within one.
      for (std::int32_t* const columns : {&r.c_q, &r.c_k, &r.c_v, &r.d_o})
        *columns = 1 << between(stream, 5, 7), *columns += between(stream, -1, 9);
      set_heads(r, between(stream, 1, 4), 1);
      r.queries = between(stream, 1, 4);
      r.keys = between(stream, 2, 5);
      break;
  }
  set_widths(r, width, width);
  fit(r, most_multihead_products(r, what, 0x1p21), width);
}

}  // namespace attest
