// A shared library under test, in a process that is this program again, started as `worker LIBRARY`.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "core/isolation/shared_call.h"
#include "core/isolation/shared_memory.h"
#include "core/isolation/worker.h"
#include "core/problem/edge.h"

namespace attest::process {
namespace {

constexpr std::uint64_t tensor_alignment = 64;

/// Gives a tensor its place at the end of what is laid out so far.
SharedTensor place(DType dtype, const Shape& shape, std::uint64_t& end) {
  SharedTensor tensor;
  tensor.dtype = static_cast<std::int32_t>(dtype);
  tensor.rank = shape.rank();
  for (int axis = 0; axis < shape.rank(); ++axis) tensor.shape[static_cast<std::size_t>(axis)] = shape[axis];
  tensor.offset = end;
  end += static_cast<std::uint64_t>(shape.elements()) * size_of(dtype);
  end = (end + tensor_alignment - 1) / tensor_alignment * tensor_alignment;
  return tensor;
}

class LibraryCarrier final : public Carrier {
 public:
  LibraryCarrier(Child child, Descriptor control, Descriptor memory_file, int interrupt, Output& output)
      : child_(std::move(child)),
        control_(std::move(control)),
        memory_file_(std::move(memory_file)),
        interrupt_(interrupt),
        output_(output) {}

  [[nodiscard]] Exchange manifest(Clock::time_point until) override {
    SharedRequest request;
    Answer answer = ask(request, until);
    // What a library lacks is no crash of ours: the same line, without the talk of processes.
    if (answer.status == CallStatus::failed) answer.status = CallStatus::malformed;
    if (answer.status != CallStatus::ok) return {answer.status, {}, std::move(answer.text)};
    return {CallStatus::ok, std::move(answer.text), std::move(answer.finding)};
  }

  [[nodiscard]] Reply call(const Case& c, const Wanted& wanted, Clock::time_point until) override {
    const bool want_lse = wanted.lse, backward = wanted.backward != nullptr;
    SharedRequest request;
    request.prefix.kind = SharedKind::call;
    request.backward = backward ? 1 : 0;
    request.operation = static_cast<std::int32_t>(c.operation);
    request.scalars = argument_values(c);
    request.layouts = layouts_of(c);
    request.edge = static_cast<std::int64_t>(edge_of(c));
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < c.tensors.size(); ++i) {
      if (c.tensors[i].present()) request.inputs[i] = place(c.tensors[i].dtype(), c.tensors[i].shape(), end);
    }
    const Shape shape = c.out_shape();
    const auto put = [&](const Tensor& tensor, SharedTensor& to) {
      if (tensor.present()) to = place(tensor.dtype(), tensor.shape(), end);
    };
    if (backward) {
      request.out.dtype = static_cast<std::int32_t>(wanted.output);
      put(wanted.backward->call.out, request.answer_out), put(wanted.backward->call.lse, request.answer_lse);
      for (const Gradient gradient : every_gradient)
        if (wanted.backward->asks_for(gradient, c))
          request.gradients[static_cast<std::size_t>(gradient)] =
              place(dtype_of(c, gradient, wanted.output), c[slot_of(gradient)].shape(), end);
    } else {
      request.out = place(wanted.output, shape, end);
      if (want_lse) request.lse = place(DType::f64, {shape[0], shape[1], shape[2]}, end);
    }
    if (std::string trouble = make_room(end); !trouble.empty()) return {CallStatus::unsupported, trouble, {}, {}};
    request.memory_bytes = memory_.bytes();
    const auto copy = [&](const Tensor& tensor, const SharedTensor& to) {
      const auto bytes = tensor.bytes();
      if (!bytes.empty()) std::memcpy(memory_.data() + to.offset, bytes.data(), bytes.size());
    };
    for (std::size_t i = 0; i < c.tensors.size(); ++i) copy(c.tensors[i], request.inputs[i]);
    if (backward) {
      copy(wanted.backward->call.out, request.answer_out);
      copy(wanted.backward->call.lse, request.answer_lse);
    }
    Answer answer = ask(request, until);
    Reply reply{answer.status, std::move(answer.text), {}, {}};
    if (reply.status != CallStatus::ok) return reply;
    for (std::size_t i = 0; i < reply.gradients.size(); ++i)
      if (request.gradients[i].dtype >= 0) reply.gradients[i] = taken(request.gradients[i]);
    if (backward) return reply;
    reply.out = taken(request.out);
    if (want_lse) reply.lse = taken(request.lse);
    return reply;
  }

  [[nodiscard]] std::string end(Clock::time_point until) override {
    control_.close();
    std::string how = child_.end(until, &output_);
    if (how == fmt::format("exited with status {}", status_connection_closed)) {
      how = "had its connection closed by the kernel, which closes descriptors that are not its own";
    } else if (how == fmt::format("exited with status {}", status_late_change)) {
      how = "had its tensors written to by a thread that the kernel left behind";
    }
    return how;
  }
  [[nodiscard]] bool has_ended() const override { return child_.has_ended(); }
  [[nodiscard]] bool is_stopped() const override { return child_.is_stopped(); }

 private:
  struct Answer {
    CallStatus status = CallStatus::ok;
    std::string text;
    std::string finding{};
  };

  /// One packet there and one back.
  Answer ask(SharedRequest& request, Clock::time_point until) {
    request.prefix.sequence = ++sequence_;
    while (::send(control_.get(), &request, sizeof request, MSG_NOSIGNAL) < 0) {
      if (errno == EINTR) continue;
      // It is gone; perhaps it said why.
      const ssize_t got = receive();
      return got > 0 ? read(request.prefix, static_cast<std::size_t>(got)) : Answer{CallStatus::died, {}};
    }
    for (;;) {
      // poll passes over a descriptor of -1.
      std::array<pollfd, 5> ready{{{control_.get(), POLLIN, 0},
                                   {interrupt_, POLLIN, 0},
                                   {child_.ended_descriptor(), POLLIN, 0},
                                   {output_.error_source(), POLLIN, 0},
                                   {output_.output_source(), POLLIN, 0}}};
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
      const int count =
          ::poll(ready.data(), ready.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000'000)));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0 || ready[1].revents != 0) return {CallStatus::timed_out, {}};
      if (ready[3].revents != 0 || ready[4].revents != 0) output_.drain();
      if (ready[0].revents == 0 && ready[2].revents == 0) {
        // One that prints without end is late like any other.
        if (left <= 0) return {CallStatus::timed_out, {}};
        continue;
      }
      // A child that a dead kernel left behind holds the other end open: then there is nothing to be had.
      const ssize_t got = receive();
      if (got <= 0) return {CallStatus::died, {}};
      return read(request.prefix, static_cast<std::size_t>(got));
    }
  }

  /// What is there to be had, without waiting for it.
  ssize_t receive() {
    for (bool reset = false;;) {
      const ssize_t got = ::recv(control_.get(), packet_.data(), packet_.size(), MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      // A process that died over an unread request resets the connection; its last words stand behind that error.
      if (got >= 0 || errno != ECONNRESET || std::exchange(reset, true)) return got;
    }
  }

  /// The kernel shares the worker's memory and descriptors, so nothing in a packet is believed unchecked.
  Answer read(const SharedPrefix& asked, std::size_t got) const {
    Answer no_reply{CallStatus::malformed,
                    "what came over the connection is no reply; the kernel wrote to descriptor 3, or over memory"};
    SharedReply header;
    if (got < sizeof header) return no_reply;
    std::memcpy(&header, packet_.data(), sizeof header);
    const std::size_t size = header.prefix.size;
    const bool death = header.prefix.kind == SharedKind::death;
    if (header.prefix.magic != shared_magic || header.prefix.version != shared_version || size < sizeof header ||
        size > got || header.text_bytes > got - size || header.finding_bytes != got - size - header.text_bytes) {
      return no_reply;
    }
    const char* const text = packet_.data() + size;
    if (death) return {CallStatus::died, std::string(text, header.text_bytes)};
    if (header.prefix.kind != asked.kind || header.prefix.sequence != asked.sequence || header.status < 0 ||
        header.status > static_cast<std::int32_t>(CallStatus::failed)) {
      return no_reply;
    }
    return {static_cast<CallStatus>(header.status), std::string(text, header.text_bytes),
            std::string(text + header.text_bytes, header.finding_bytes)};
  }

  std::string make_room(std::uint64_t bytes) {
    constexpr std::uint64_t page = 1U << 16;
    bytes = std::max<std::uint64_t>((bytes + page - 1) / page * page, page);
    if (bytes <= memory_.bytes()) return {};
    // Room for half as much again: growing maps everything anew on both sides.
    if (memory_.bytes() != 0) bytes += bytes / 2 / page * page;
    if (::ftruncate(memory_file_.get(), static_cast<off_t>(bytes)) != 0) {
      return fmt::format("{} bytes of shared memory cannot be had", bytes);
    }
    try {
      memory_.map(memory_file_.get(), bytes);
    } catch (const std::system_error&) {
      return fmt::format("{} bytes of shared memory cannot be mapped", bytes);
    }
    return {};
  }

  [[nodiscard]] Tensor taken(const SharedTensor& from) const {
    Tensor tensor(static_cast<DType>(from.dtype),
                  Shape(std::span(from.shape).first(static_cast<std::size_t>(from.rank))));
    const auto bytes = tensor.bytes();
    if (!bytes.empty()) std::memcpy(bytes.data(), memory_.data() + from.offset, bytes.size());
    return tensor;
  }

  Child child_;
  Descriptor control_, memory_file_;
  int interrupt_;
  Output& output_;
  std::uint32_t sequence_ = 0;
  SharedMemory memory_;
  std::vector<char> packet_ = std::vector<char>(sizeof(SharedReply) + 2 * max_text + 1024);
};

std::filesystem::path running_program() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error);
}

/// What a library sees of its own folder: all of it where the folder was opened to it, else the libraries in it, which
/// it may need. A folder may hold anything, as a home does.
std::vector<SeenAs> seen_in(const std::filesystem::path& folder, const std::filesystem::path& library,
                            const Walls& walls) {
  namespace fs = std::filesystem;
  const fs::path inside = "/kernel";
  if (std::ranges::any_of(walls.readable, [&](const fs::path& path) { return is_within(folder, fs::canonical(path)); }))
    return {{folder, inside}};
  std::vector<SeenAs> seen{{folder / library, inside / library}};
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const fs::path name = entry.path().filename();
    const bool is_library = name.extension() == ".so" || name.native().find(".so.") != std::string::npos;
    if (is_library && entry.is_regular_file() && name != library) seen.push_back({entry.path(), inside / name});
  }
  return seen;
}

}  // namespace

Starter library_starter(std::filesystem::path library, const KernelOptions& options) {
  return [program = options.walls                    ? kernel_host()
                    : options.worker_program.empty() ? running_program()
                                                     : options.worker_program,
          library = std::move(library), interrupt = options.interrupt, memory = options.memory,
          walls = options.walls](Output& output) -> std::unique_ptr<Carrier> {
    Pair control = make_socket_pair();
    Descriptor memory_file = make_memory_file("tensors");
    // Whoever else has the file and cuts it off must not take us with it.
    seal(memory_file, F_SEAL_SHRINK);
    Launch launch;
    // It limits itself: what this program holds before it loads the library is no concern of the kernel.
    launch.argv = {program.string(), "worker", library.string(), std::to_string(memory)};
    launch.walls = walls;
    if (walls) {
      const std::filesystem::path folder = std::filesystem::canonical(std::filesystem::absolute(library).parent_path());
      launch.argv[2] = (folder / library.filename()).string();
      launch.seen = seen_in(folder, library.filename(), *walls);
      launch.seen.push_back({program, "/host"});
    }
    launch.standard_output = output.output_descriptor();
    launch.standard_error = output.error_descriptor();
    launch.further = {control.write.get(), memory_file.get()};
    Child child(launch);
    return std::make_unique<LibraryCarrier>(std::move(child), std::move(control.read), std::move(memory_file),
                                            interrupt, output);
  };
}

}  // namespace attest::process
