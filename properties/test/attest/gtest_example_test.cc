// A function of the user's own under the whole catalogue, as attest/gtest.h shows it: five lines beside the function.
#include <attest/gtest.h>

#include <cmath>
#include <vector>

namespace {

float& at(const attest_tensor& t, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
  return static_cast<float*>(t.data)[b * t.stride[0] + h * t.stride[1] + i * t.stride[2] + c * t.stride[3]];
}

/// Attention in float without masks; row i reads key-value head h.
int mine(const attest_problem& p, attest_result& result, std::string&) {
  for (std::int64_t b = 0; b < p.q.shape[0]; ++b) {
    for (std::int64_t h = 0; h < p.q.shape[1]; ++h) {
      for (std::int64_t i = 0; i < p.q.shape[2]; ++i) {
        std::vector<float> weight(static_cast<std::size_t>(p.k.shape[2]));
        float largest = -INFINITY, sum = 0;
        for (std::int64_t j = 0; j < p.k.shape[2]; ++j) {
          float dot = 0;
          for (std::int64_t c = 0; c < p.q.shape[3]; ++c) dot += at(p.q, b, h, i, c) * at(p.k, b, h, j, c);
          weight[static_cast<std::size_t>(j)] = dot * static_cast<float>(p.scale);
          largest = std::max(largest, weight[static_cast<std::size_t>(j)]);
        }
        for (float& w : weight) sum += w = std::exp(w - largest);
        for (std::int64_t c = 0; c < p.v.shape[3]; ++c) {
          float o = 0;
          for (std::int64_t j = 0; j < p.k.shape[2]; ++j)
            o += weight[static_cast<std::size_t>(j)] * at(p.v, b, h, j, c);
          at(result.out, b, h, i, c) = o / sum;
        }
      }
    }
  }
  return ATTEST_OK;
}

ATTEST_CATALOGUE(Mine, R"({"name": "mine", "dtypes": ["f32"], "masks": []})", mine)

}  // namespace
