#include "core/isolation/adapters.h"

#include <array>
#include <cstdlib>
#include <system_error>

namespace attest {
namespace {

constexpr std::array pytorch{
    AdapterKernel{"pytorch:mha", "torch.nn.MultiheadAttention as its Python code computes it; needs PyTorch"},
    AdapterKernel{"pytorch:mha-fast", "torch.nn.MultiheadAttention on its native fast path; needs PyTorch"},
    AdapterKernel{"pytorch:sdpa", "scaled_dot_product_attention; needs PyTorch"}};
/// The interpreter that users have on the PATH, as that of an environment with PyTorch 2; else Debian's own, for which
/// its package python3-torch is.
constexpr std::array python_programs{"python3", "/usr/bin/python3"};

constexpr std::array onnxruntime{
    AdapterKernel{"ort:attention", "ONNX Runtime's Attention, opset 24; needs Node.js and onnxruntime-node"},
    AdapterKernel{"ort:attention-23", "the same of opset 23"},
    AdapterKernel{"ort:group-query", "ONNX Runtime's com.microsoft.GroupQueryAttention"},
    AdapterKernel{"ort:group-query-f16", "the same in float16"},
    AdapterKernel{"ort:multihead",
                  "ONNX Runtime's com.microsoft.MultiHeadAttention, on projected queries, keys and values"}};
constexpr std::array node_programs{"node"};

constexpr std::array families{
    AdapterFamily{pytorch, "pytorch/pytorch_kernels.py", python_programs, "PyTorch cannot be imported",
                  "install python3-torch, or leave pytorch out with --kernel 'builtin:*'"},
    AdapterFamily{onnxruntime, "onnxruntime/ort_kernels.js", node_programs, "onnxruntime-node cannot be loaded",
                  "install Node.js, and onnxruntime-node with: npm ci in the adapter's folder, onnxruntime/"}};

}  // namespace

std::span<const AdapterFamily> adapter_families() {
  return families;
}

std::filesystem::path adapters_folder() {
  namespace fs = std::filesystem;
  std::error_code error;
  if (const char* set = std::getenv("ATTEST_ADAPTERS"); set != nullptr && *set != '\0') {
    return fs::is_directory(set, error) ? fs::absolute(set, error) : fs::path();
  }
  const auto program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    auto installed = program.parent_path().parent_path() / ATTEST_INSTALLED_ADAPTERS;
    if (fs::is_directory(installed, error)) return installed;
  }
  fs::path source = ATTEST_SOURCE_ADAPTERS;
  return fs::is_directory(source, error) ? source : fs::path();
}

}  // namespace attest
