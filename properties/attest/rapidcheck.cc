#include <attest/rapidcheck.h>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "properties/catalogue/property.h"
#include "properties/generators/recipes.h"
#include "properties/road/case_budget.h"
#include "properties/road/simpler_cases.h"
#include "properties/road/simplify.h"

namespace attest {
namespace {

/// What one step makes of a case, step after step, made when it is asked for.
class SimplerCases {
 public:
  explicit SimplerCases(Case from) : from_(std::make_shared<const Steps>(std::move(from))) {}
  rc::Maybe<Case> operator()() {
    while (next_ < from_->steps.size()) {
      Case simpler = from_->start;
      if (!from_->steps[next_++](simpler)) continue;
      simpler.provenance.shrunk = "yes";
      return simpler;
    }
    return rc::Nothing;
  }

 private:
  struct Steps {
    explicit Steps(Case from) : start(std::move(from)), steps(steps_from(start)) {}
    Case start;
    std::vector<Step> steps;
  };
  std::shared_ptr<const Steps> from_;
  std::size_t next_ = 0;
};

/// A generator of what a function makes of a random number, which shrinks by our steps.
template <class MakeCase>
rc::Gen<Case> shrinking(MakeCase make) {
  return [make = std::move(make)](const rc::Random& random, int /*size*/) {
    rc::Random source = random;
    return rc::shrinkable::shrinkRecur(make(source), [](const Case& c) { return rc::makeSeq<SimplerCases>(c); });
  };
}

rc::Gen<Case> decoded(rc::Gen<Recipe> recipes, EditRecipe edit) {
  return shrinking([recipes = std::move(recipes), edit = std::move(edit)](rc::Random& source) {
    Recipe recipe = recipes(source).value();
    if (edit) edit(recipe);
    return decode(recipe);
  });
}

Recipe with_extents(Recipe r, const Extents& e) {
  const auto set = [](std::int32_t& extent, std::int64_t to) { extent = static_cast<std::int32_t>(to); };
  set(r.batch, e.batch), set(r.heads, e.heads), set(r.kv_heads, e.kv_heads);
  set(r.queries, e.queries), set(r.keys, e.keys), set(r.dk, e.dk), set(r.dv, e.dv);
  return r;
}

}  // namespace

rc::Gen<Case> attention_cases(DType dtype, EditRecipe edit) {
  return decoded(attention_recipes(dtype), std::move(edit));
}

rc::Gen<Case> multihead_cases(DType dtype, EditRecipe edit) {
  return decoded(multihead_recipes(dtype), std::move(edit));
}

rc::Gen<Case> cases_of(std::string_view name, DType dtype, const Manifest& manifest) {
  return shrinking([&property = property_named(name), dtype, manifest](rc::Random& source) {
    const std::uint64_t seed = source.next();
    // The first hundred have cases of each length.
    const auto k = static_cast<std::int64_t>(source.next() % 100);
    try {
      return project(generate(property, dtype, seed, k), manifest);
    } catch (const std::bad_alloc&) {
      Case none;
      none.operation = property.operation;
      none.provenance.over_budget = out_of_memory;
      return none;
    }
  });
}

rc::Gen<Tensor> masks(const Extents& extents, DType dtype) {
  return [=](const rc::Random& random, int /*size*/) {
    Recipe recipe = with_extents(attention_recipes(dtype)(random).value(), extents);
    if (recipe.mask == MaskKind::none) recipe.mask = MaskKind::random;
    return rc::shrinkable::shrinkRecur(decode(recipe).mask(), [](const Tensor& mask) {
      std::vector<Tensor> simpler;
      for (const Simplification to : simplifications) {
        Tensor changed = mask;
        if (simplify_all(changed, to)) simpler.push_back(std::move(changed));
      }
      return rc::seq::fromContainer(std::move(simpler));
    });
  };
}

}  // namespace attest

namespace rc {
using namespace attest;

Gen<Case> Arbitrary<Case>::arbitrary() {
  return gen::mapcat(gen::arbitrary<DType>(), [](DType dtype) { return attention_cases(dtype); });
}

Gen<DType> Arbitrary<DType>::arbitrary() {
  return gen::element(DType::f32, DType::f64, DType::f16, DType::bf16);
}

Gen<Extents> Arbitrary<Extents>::arbitrary() {
  return [](const Random& random, int /*size*/) {
    return shrinkable::shrinkRecur(
        extents_of(decode(attention_recipes(DType::f32)(random).value())), [](const Extents& from) {
          std::vector<Extents> shorter;
          for (const auto part : {&Extents::batch, &Extents::keys, &Extents::queries, &Extents::dk, &Extents::dv}) {
            for (std::int64_t to = 1; to < from.*part; to = std::max(to + 1, (to + from.*part) / 2)) {
              shorter.push_back(from);
              shorter.back().*part = to;
            }
          }
          if (from.heads > 1) {
            shorter.push_back(from);
            shorter.back().heads = shorter.back().kv_heads = 1;
          }
          return seq::fromContainer(std::move(shorter));
        });
  };
}

}  // namespace rc
