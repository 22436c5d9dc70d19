#include "reports/test/program_checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "core/test/places.h"
#include "core/value/safetensors.h"

namespace attest {

std::ptrdiff_t lines_in(const std::string& text) {
  return std::ranges::count(text, '\n');
}

std::string one_line_of(const fake::Folder& folder, const std::string& line, int status) {
  std::string output = output_of(folder, line, status);
  EXPECT_EQ(lines_in(output), 1) << line << "\n" << output;
  return output;
}

void expect_refused(const std::string& arguments, const std::string& part, int status) {
  const fake::Folder folder;
  EXPECT_THAT(one_line_of(folder, "$attest " + arguments, status), Says(part));
}

void write_case(const std::filesystem::path& file, double first, bool all_masked) {
  TensorFile tensors;
  for (const char* name : {"q", "k", "v"}) {
    Tensor tensor(DType::f32, {1, 1, 3, 2});
    for (std::int64_t i = 0; i < tensor.elements(); ++i) tensor.set(i, 0.25 * static_cast<double>(i - 2));
    if (name[0] == 'q') tensor.set(0, first);
    tensors.tensors.emplace_back(name, tensor);
  }
  if (all_masked) tensors.tensors.emplace_back("mask", Tensor(DType::boolean, {1, 1, 3, 3}));
  tensors.metadata = {{"attest", "1"}, {"op", "attention"}, {"scale", "0.5"}};
  std::ofstream(file, std::ios::binary) << write_safetensors(tensors);
}

bool has_numpy(const fake::Folder& folder) {
  return shell(folder, "/usr/bin/python3 -c 'import numpy'").status == 0;
}

void write_python(const fake::Folder& folder, const std::string& name, const std::string& code,
                  const std::string& more) {
  std::ofstream(folder / (name + ".py")) << "import sys\nsys.path.insert(0, '" + source_folder() +
                                                "/core/adapters/python')\nimport attest_adapter\nimport numpy\n"
                                         << code << "attest_adapter.serve(attention, {'name': '" << name
                                         << "', 'masks': [], 'fully_masked_row': 'nan', " << more << "})\n";
}

std::string python_kernel(const fake::Folder& folder, const std::string& name, const std::string& factor) {
  write_python(folder, name,
               "def attention(q, k, v, scale=1.0):\n"
               "    scores = (q @ k.swapaxes(-1, -2)) * q.dtype.type(scale * " +
                   factor +
                   ")\n"
                   "    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True, initial=-numpy.inf))\n"
                   "    return weights @ v / weights.sum(axis=-1, keepdims=True)\n",
               "'dtypes': ['f64']");
  return has_numpy(folder) ? "'exec:/usr/bin/python3 " + name + ".py'" : "";
}

}  // namespace attest
