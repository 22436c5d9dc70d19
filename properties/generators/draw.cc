#include "generators/draw.h"

#include "generators/recipes.h"

namespace attest {

DrawnAttention Draw::attention() {
  const Recipe recipe = attention_recipes(dtype_)(random_.split()).value();
  return {recipe, random_.split()};
}

DrawnMultihead Draw::multihead() {
  return DrawnMultihead(multihead_recipes(dtype_)(random_.split()).value());
}

DrawnAttention& DrawnAttention::near_the_edge() {
  if (random_.split().next() % 2 == 0) move_to_the_edge(recipe_, random_);
  return *this;
}

DrawnMultihead& DrawnMultihead::torch_case() {
  recipe_.dv = recipe_.dk;
  const std::int32_t d = recipe_.heads * recipe_.dk;
  recipe_.c_q = recipe_.d_o = d;
  // Half of the cases in the packed form, where c_k = c_v = d.
  if (recipe_.seed % 2 == 0) recipe_.c_k = recipe_.c_v = d;
  recipe_.output_projection = true;
  recipe_.scale = ScaleKind::inverse_root;
  recipe_.convention = MaskConvention::post_scale;
  return *this;
}

}  // namespace attest
