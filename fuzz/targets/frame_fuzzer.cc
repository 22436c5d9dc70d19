// Frames: what a program under test may write on its standard output, up to what a pipe holds. Read to its end without
// harm, and a body that is taken is as long as its frame said.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "core/isolation/frames.h"
#include "fuzz/targets/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attest;
  using namespace attest::process;
  int to_child[2], from_child[2];
  require(::pipe2(to_child, O_CLOEXEC) == 0 && ::pipe2(from_child, O_CLOEXEC) == 0, "no pipe");
  const std::size_t most = std::min<std::size_t>(size, 32'768);
  require(::write(from_child[1], data, most) == static_cast<ssize_t>(most), "the pipe is too short");
  ::close(from_child[1]);
  {
    FrameChannel channel{Descriptor(to_child[1]), Descriptor(from_child[0]), /*interrupt=*/-1};
    const Exchange exchange = channel.exchange("", Clock::now() + std::chrono::seconds(1), /*most=*/1 << 20);
    if (exchange.status == CallStatus::ok) {
      std::uint64_t said = 0;
      for (int i = 7; i >= 0; --i) said = said << 8 | data[i];
      require(exchange.body.size() == said, "a body of another length than its frame says");
    } else {
      require(exchange.status == CallStatus::died || exchange.status == CallStatus::malformed, "a wait for nothing");
    }
  }
  ::close(to_child[0]);
  return 0;
}
