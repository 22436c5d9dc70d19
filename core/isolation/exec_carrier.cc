// The frame protocol of kernel-interface.md, section 2, from our side.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "core/isolation/adapters.h"
#include "core/isolation/shared_files.h"
#include "core/isolation/unfit_output.h"
#include "core/isolation/worker.h"
#include "core/problem/case_file.h"
#include "core/problem/kv_cache.h"
#include "core/problem/memory.h"
#include "core/support/names.h"
#include "core/value/safetensors.h"

namespace attest::process {
namespace {

std::string manifest_request() {
  return write_safetensors({{}, {{"attest", "1"}, {"op", "manifest"}}});
}

/// Answers of a forward pass that are sent with a problem, `out` and `lse`.
using Answers = std::vector<std::pair<std::string, const Tensor*>>;

/// Where a program that asks for strides is to lay its inputs: {"k": {"start": 0, "strides": [57, 27, 8, 1],
/// "elements": 48}}, of the tensors that are not row-major, counted in elements.
std::string strides_request(const Case& c, const Layouts& layouts, const Answers& answers) {
  nlohmann::json places = nlohmann::json::object();
  const auto add = [&](std::string_view name, const Tensor& tensor, MemoryLayout layout) {
    // A frame holds every tensor by itself.
    if (!tensor.present() || layout == MemoryLayout::row_major || layout == MemoryLayout::aliased) return;
    const attest_tensor view = tensor.view();
    const Placement placed = place(layout, view);
    places[std::string(name)] = {{"start", placed.start},
                                 {"strides", std::span(placed.stride).first(static_cast<std::size_t>(view.rank))},
                                 {"elements", placed.elements}};
  };
  for (int i = 0; i < slot_count; ++i) {
    const auto slot = static_cast<Slot>(i);
    add(name_of(slot), c[slot], layouts[slot]);
  }
  for (const auto& [name, answer] : answers) add(name, *answer, name == "out" ? layouts.out : layouts.lse);
  return places.empty() ? "" : places.dump();
}

/// What a request says beside the problem: what the contract names, and nothing of the case's story.
Provenance said_in_request(const Case& c, DType output, bool want_lse, const Answers& answers = {}) {
  Provenance said;
  if (const Layouts layouts = layouts_of(c); layouts != Layouts())
    if (std::string places = strides_request(c, layouts, answers); !places.empty()) said.strides = std::move(places);
  if (want_lse) said.others["want"] = "lse";
  if (output != c.dtype()) said.others["out_dtype"] = name_of(output);
  return said;
}

Reply malformed(std::string message) {
  return {CallStatus::malformed, std::move(message), {}, {}};
}

/// Checks one output tensor; empty when it is as asked.
std::string why_wrong(std::string_view name, const Tensor& found, DType dtype, const Shape& shape) {
  if (found.dtype() != dtype) {
    return fmt::format("{} is {}; it must be {}", name, name_of(found.dtype()), name_of(dtype));
  }
  if (!(found.shape() == shape)) {
    return fmt::format("{} has the shape {}; it must be {}", name, found.shape().to_string(), shape.to_string());
  }
  return {};
}

/// What a call did to a cache that it had not to do, bit for bit; empty: nothing.
std::string why_other(std::string_view name, const Tensor& found, const Tensor& after, const Tensor& before) {
  const std::size_t size = size_of(after.dtype());
  const auto differs = [&](const Tensor& one, std::int64_t e) {
    const std::size_t at = static_cast<std::size_t>(e) * size;
    return std::memcmp(one.bytes().data() + at, after.bytes().data() + at, size) != 0;
  };
  for (std::int64_t e = 0; e < after.elements(); ++e)
    if (differs(found, e)) return words_of_append(name, after.shape(), e, differs(before, e));
  return {};
}

std::optional<CallStatus> status_named(const std::string& word) {
  if (word == "ok") return CallStatus::ok;
  if (word == "unsupported") return CallStatus::unsupported;
  if (word == "rejected") return CallStatus::rejected;
  if (word == "failed") return CallStatus::failed;
  return std::nullopt;
}

/// Status and message of a reply; malformed where the status is none.
Reply read_status(const TensorFile& file) {
  Reply reply;
  if (const auto status = file.metadata.find("status"); status != file.metadata.end()) {
    const auto known = status_named(status->second);
    if (!known) {
      return malformed(fmt::format("the reply's status is {}; it must be unsupported, rejected, failed, or absent",
                                   in_quotes(status->second)));
    }
    reply.status = *known;
  }
  if (const auto message = file.metadata.find("message"); message != file.metadata.end()) {
    reply.message = message->second;
  }
  return reply;
}

Reply read_reply(TensorFile file, const Case& c, DType output, bool want_lse) {
  Reply reply = read_status(file);
  if (reply.status != CallStatus::ok) return reply;
  const Shape shape = c.out_shape();
  const bool appends = c[Slot::k_new].present();
  int caches = 0;
  std::string trespass;
  for (auto& [name, tensor] : file.tensors) {
    std::string wrong;
    if (name == "out") {
      wrong = why_wrong(name, tensor, output, shape);
      if (tensor.shape() != shape) wrong += likeness(tensor, c);
      reply.out = std::move(tensor);
    } else if (name == "lse") {
      if (!want_lse) continue;
      wrong = why_wrong(name, tensor, DType::f64, lse_shape(c));
      reply.lse = std::move(tensor);
    } else if (appends && (name == "k" || name == "v")) {
      const Slot slot = name == "k" ? Slot::k : Slot::v;
      const Tensor after = after_the_call(c, slot);
      wrong = why_wrong(name, tensor, after.dtype(), after.shape());
      if (wrong.empty()) trespass = trespass.empty() ? why_other(name, tensor, after, c[slot]) : trespass;
      ++caches;
    } else {
      wrong = fmt::format("the reply holds a tensor named {}; only {} are known", in_quotes(name),
                          appends ? "out, lse, k and v" : "out and lse");
    }
    if (!wrong.empty()) return malformed(std::move(wrong));
  }
  if (!reply.out.present()) return malformed("the reply has no tensor named out");
  if (want_lse && !reply.lse.present()) return malformed("the reply has no tensor named lse, and it was asked for");
  if (appends && caches != 2)
    return malformed(
        "the reply has no tensors named k and v: of a call with k_new it has the caches as it leaves them");
  if (!trespass.empty()) return {CallStatus::failed, std::move(trespass), {}, {}};
  return reply;
}

Reply read_gradients(TensorFile file, const Case& c, DType output, const Wanted::Backward& backward) {
  Reply reply = read_status(file);
  if (reply.status != CallStatus::ok) return reply;
  for (auto& [name, tensor] : file.tensors) {
    const auto gradient = named<Gradient>(name);
    if (!gradient || !backward.terms.returns(*gradient, c))
      return malformed(fmt::format("the reply holds a tensor named {}, which was not asked for", in_quotes(name)));
    if (std::string wrong = why_wrong(name, tensor, dtype_of(c, *gradient, output), c[slot_of(*gradient)].shape());
        !wrong.empty())
      return malformed(std::move(wrong));
    // Who answers with all that there are has answered.
    if (backward.asks_for(*gradient, c)) reply.gradients[static_cast<std::size_t>(*gradient)] = std::move(tensor);
  }
  for (const Gradient gradient : every_gradient)
    if (backward.asks_for(gradient, c) && !reply.gradients[static_cast<std::size_t>(gradient)].present())
      return malformed(fmt::format("the reply has no tensor named {}, and it was asked for", name_of(gradient)));
  return reply;
}

/// Requests and answers of fewer bytes go through frames: making, opening and mapping two files takes as long.
constexpr std::uint64_t least_shared = std::uint64_t{1} << 20U;

/// What a frame may hold beside tensors: header, manifest, message.
constexpr std::uint64_t other_bytes = std::uint64_t{16} << 20U;

/// Bytes of the largest reply worth reading: out and lse in the widest dtype, so that one in a wrong dtype is told as
/// such, and as much again, so that one with a tensor too many is.
std::uint64_t most_reply(const Case& c, bool want_lse) {
  const Shape shape = c.out_shape();
  const auto out = static_cast<std::uint64_t>(shape.elements());
  const auto lse = want_lse ? static_cast<std::uint64_t>(shape[0] * shape[1] * shape[2]) : 0;
  std::uint64_t gradients = 0;
  for (const Gradient gradient : every_gradient)
    if (asks_for_gradients(c)) gradients += static_cast<std::uint64_t>(c[slot_of(gradient)].elements());
  const std::uint64_t caches = c[Slot::k_new].present() ? c.k().bytes().size() + c.v().bytes().size() : 0;
  return std::min<std::uint64_t>(max_frame, other_bytes + 2 * size_of(DType::f64) * (out + lse + gradients) + caches);
}

/// Of a manifest that whoever reads it next may refuse.
bool states_shared_memory(const std::string& manifest) {
  try {
    return parse_manifest(manifest, "its manifest").shared_memory;
  } catch (const UsageError&) {
    return false;
  }
}

class ExecCarrier final : public Carrier {
 public:
  /// `same_files`: the program sees this machine's files, so that it may be given tensors in some.
  /// `turns`: of the kernel; null where what it says of them is not believed.
  ExecCarrier(Child child, FrameChannel channel, bool same_files, std::shared_ptr<Turns> turns, Output& output)
      : child_(std::move(child)),
        channel_(std::move(channel)),
        same_files_(same_files),
        turns_(std::move(turns)),
        output_(output) {}

  [[nodiscard]] Exchange manifest(Clock::time_point until) override {
    Exchange exchange = exchange_in_turn(manifest_request(), until, other_bytes);
    if (exchange.status != CallStatus::ok) return exchange;
    const auto refuse = [](std::string message) { return Exchange{CallStatus::malformed, {}, std::move(message)}; };
    try {
      auto file = read_safetensors(exchange.body, "the reply to the manifest request");
      if (const auto found = file.metadata.find("manifest"); found != file.metadata.end()) {
        shares_memory_ = same_files_ && states_shared_memory(found->second);
        if (turns_ && file.metadata.contains("takes_turns")) turns_->are_taken = true;
        return {CallStatus::ok, std::move(found->second), {}};
      }
      const auto message = file.metadata.find("message");
      return refuse(message == file.metadata.end() ? "the reply to the manifest request has no manifest in its metadata"
                                                   : message->second);
    } catch (const UsageError& error) {
      return refuse(error.what());
    }
  }

  [[nodiscard]] Reply call(const Case& c, const Wanted& wanted, Clock::time_point until) override {
    if (wanted.backward != nullptr) return call_backward(c, wanted.output, *wanted.backward, until);
    const DType output = wanted.output;
    const bool want_lse = wanted.lse;
    const Provenance said = said_in_request(c, output, want_lse);
    // A reply with caches comes as a frame.
    if (shares_memory_ && !c[Slot::k_new].present()) {
      if (std::optional<Reply> reply = call_through_memory(c, said, output, want_lse, until)) return *std::move(reply);
    }
    const CasePieces request = pieces_of(c, said);
    if (request.size() > max_frame) {
      return {CallStatus::unsupported,
              fmt::format("the request has {} bytes; a frame holds 1 GiB", request.size()),
              {},
              {}};
    }
    return exchange(request.joined(), c, want_lse, until,
                    [&](TensorFile file) { return read_reply(std::move(file), c, output, want_lse); });
  }

  [[nodiscard]] Clock::time_point begun(Clock::time_point start) const override { return std::max(start, begun_); }
  [[nodiscard]] std::string end(Clock::time_point until) override {
    channel_.close_input();
    return child_.end(until, &output_);
  }
  [[nodiscard]] bool is_in_step() const override { return in_step_; }
  [[nodiscard]] bool has_ended() const override { return child_.has_ended(); }
  [[nodiscard]] bool is_stopped() const override { return child_.is_stopped(); }

 private:
  /// Always a frame: of what a backward pass returns there is as much as of what it is given.
  Reply call_backward(const Case& c, DType output, const Wanted::Backward& backward, Clock::time_point until) {
    Answers answers;
    if (backward.terms.uses_out) answers.emplace_back("out", &backward.call.out);
    if (backward.terms.uses_lse) answers.emplace_back("lse", &backward.call.lse);
    Provenance said = said_in_request(c, output, /*want_lse=*/false, answers);
    std::string& want = said.others["want"];
    for (const Gradient gradient : every_gradient)
      if (backward.asks_for(gradient, c)) want.append(want.empty() ? "" : " ").append(name_of(gradient));
    const CasePieces request = pieces_of(c, said, answers);
    if (request.size() > max_frame)
      return {CallStatus::unsupported,
              fmt::format("the request has {} bytes; a frame holds 1 GiB", request.size()),
              {},
              {}};
    return exchange(request.joined(), c, /*want_lse=*/false, until,
                    [&](TensorFile file) { return read_gradients(std::move(file), c, output, backward); });
  }

  Exchange exchange_in_turn(const std::string& frame, Clock::time_point until, std::uint64_t most) {
    begun_ = {};
    if (!turns_ || !turns_->are_taken) return channel_.exchange(frame, until, most);
    Turn turn(*turns_, channel_, until);
    Exchange exchange = channel_.exchange(frame, until, most, [&turn] { return turn.later(); });
    if (exchange.status == CallStatus::ok) turn.answered();
    begun_ = turn.begun();
    if (turn.never_came()) exchange.message = "the process that answers for all of them did not begin with it";
    return exchange;
  }

  /// Sends a frame and reads its reply; `read` makes of a whole one what the call came to.
  template <class Read>
  Reply exchange(const std::string& frame, const Case& c, bool want_lse, Clock::time_point until, const Read& read) {
    in_step_ = false;
    Exchange exchange = exchange_in_turn(frame, until, most_reply(c, want_lse));
    if (exchange.status != CallStatus::ok) return {exchange.status, std::move(exchange.message), {}, {}};
    try {
      TensorFile file = read_safetensors(exchange.body, "the reply");
      in_step_ = true;
      exchange.body = {};
      return read(std::move(file));
    } catch (const UsageError& error) {
      return malformed(error.what());
    }
  }

  /// Nothing where the call is to go through frames: it is small, the system gives no files, or the program does not
  /// reach them.
  std::optional<Reply> call_through_memory(const Case& c, const Provenance& said, DType output, bool want_lse,
                                           Clock::time_point until) {
    auto bytes = static_cast<std::uint64_t>(c.out_shape().elements()) * size_of(output);
    for (const Tensor& tensor : c.tensors) bytes += tensor.bytes().size();
    if (bytes < least_shared) return std::nullopt;
    const SharedTensors tensors(c, said, output, want_lse);
    if (!tensors) return std::nullopt;
    bool reached = true;
    Reply reply = exchange(tensors.frame(), c, want_lse, until, [&](TensorFile file) -> Reply {
      const auto where = file.metadata.find("shared_memory");
      if (where == file.metadata.end()) return read_reply(std::move(file), c, output, want_lse);
      if (where->second == "unreachable") {
        reached = false;
        return {};
      }
      if (where->second != "yes")
        return malformed(fmt::format("the reply's shared_memory is {}; it must be yes, unreachable, or absent",
                                     in_quotes(where->second)));
      if (!file.tensors.empty())
        return malformed("the reply says that its tensors lie in the file, and holds some itself");
      Reply status = read_status(file);
      if (status.status != CallStatus::ok) return status;
      std::optional<SharedTensors::Answer> answer = tensors.answer();
      if (!answer) return malformed("the file of the reply is shorter than it was made");
      status.out = std::move(answer->out);
      if (want_lse) status.lse = std::move(answer->lse);
      return status;
    });
    if (reached) return reply;
    shares_memory_ = false;
    return std::nullopt;
  }

  Child child_;
  FrameChannel channel_;
  bool in_step_ = false;
  bool same_files_ = true, shares_memory_ = false;
  std::shared_ptr<Turns> turns_;
  Clock::time_point begun_{};  ///< the last call, where it took a turn
  Output& output_;
};

}  // namespace

Starter program_starter(std::vector<std::string> argv, const KernelOptions& options) {
  // Behind walls nobody is believed who asks for patience.
  return [argv = std::move(argv), interrupt = options.interrupt, memory = options.memory, walls = options.walls,
          turns = options.walls ? nullptr : std::make_shared<Turns>()](Output& output) -> std::unique_ptr<Carrier> {
    Pair requests = make_pipe();
    Pair replies = make_pipe();
    Launch launch;
    launch.argv = argv;
    launch.standard_input = requests.read.get();
    launch.standard_output = replies.write.get();
    launch.standard_error = output.error_descriptor();
    launch.memory = memory;
    launch.walls = walls;
    if (const auto adapters = adapters_folder(); walls && !adapters.empty())
      launch.seen.push_back({adapters, std::string(adapters_inside)});
    Child child(launch);
    FrameChannel channel(std::move(requests.write), std::move(replies.read), interrupt, &output);
    return std::make_unique<ExecCarrier>(std::move(child), std::move(channel), walls == nullptr, turns, output);
  };
}

Starter exec_starter(std::string command, const KernelOptions& options) {
  // Behind walls the limit is set before the shell.
  if (options.memory == 0 || options.walls) return program_starter({"/bin/sh", "-c", std::move(command)}, options);
  // A limit set from outside could come too late: the shell may have started the program by then.
  std::string limited = fmt::format("ulimit -d {} 2>/dev/null; exec /bin/sh -c \"$0\"", options.memory / 1024);
  return program_starter({"/bin/sh", "-c", std::move(limited), std::move(command)}, options);
}

}  // namespace attest::process
