#include "core/isolation/worker.h"

#include <fmt/format.h>

#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "core/isolation/memory_limit.h"
#include "core/kernel/padding.h"
#include "core/problem/fields.h"
#include "core/problem/kv_cache.h"
#include "core/support/errors.h"

namespace attest::process {
namespace {

using namespace std::chrono_literals;

/// A program that closed its output is usually about to be gone.
constexpr auto grace = 1000ms;

std::string seconds(std::chrono::milliseconds limit) {
  return fmt::format("{} s", static_cast<double>(limit.count()) / 1000.0);
}

class WorkerKernel final : public Kernel {
 public:
  WorkerKernel(std::unique_ptr<Worker> worker, Manifest manifest)
      : worker_(std::move(worker)), manifest_(std::move(manifest)) {}
  [[nodiscard]] const std::string& id() const override { return worker_->id(); }
  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }
  using Kernel::run;
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    Reply reply = worker_->call(c, {.output = output.value_or(c.dtype()), .lse = want_lse});
    if (reply.status == CallStatus::ok) PaddingRows(manifest_, c).clear(reply);
    return reply;
  }
  [[nodiscard]] Reply backward(const Case& c, const BackwardCall& call, DType output) override {
    const Wanted::Backward given{call, manifest_.backward_terms};
    Reply reply = worker_->call(c, {.output = output, .backward = &given});
    if (reply.status == CallStatus::ok) clear_padding(c, reply);
    return reply;
  }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override {
    return std::make_unique<WorkerKernel>(worker_->twin(), manifest_);
  }
  [[nodiscard]] std::string load_finding() const override { return worker_->load_finding(); }
  [[nodiscard]] std::vector<std::string> notes() const override { return worker_->notes(); }

 private:
  std::unique_ptr<Worker> worker_;
  Manifest manifest_;
};

}  // namespace

void Notes::add(std::string note) {
  const std::lock_guard lock(mutex_);
  notes_.insert(std::move(note));
}

std::vector<std::string> Notes::all() const {
  const std::lock_guard lock(mutex_);
  return {notes_.begin(), notes_.end()};
}

std::unique_ptr<Kernel> worker_kernel(std::unique_ptr<Worker> worker, Manifest manifest) {
  return std::make_unique<WorkerKernel>(std::move(worker), std::move(manifest));
}

Worker::Worker(std::string id, Starter starter, KernelOptions options)
    : id_(std::move(id)),
      starter_(std::move(starter)),
      options_(std::move(options)),
      pace_(std::make_shared<Pace>(options_.reply, options_.ordinary_reply)) {}

std::unique_ptr<Worker> Worker::twin() const {
  auto twin = std::make_unique<Worker>(id_, starter_, options_);
  twin->manifest_ = manifest_;
  twin->load_finding_ = load_finding_;
  twin->notes_ = notes_;
  twin->log_ = log_;
  twin->pace_ = pace_;
  return twin;
}

Worker::~Worker() {
  if (carrier_) {
    const std::string how = carrier_->end(Clock::now() + grace);
    if (!how.starts_with("exited") && !how.starts_with("was still"))
      notes_->add("after its last call its process " + how);
  }
  note_what_was_printed();
}

void Worker::note_what_was_printed() const {
  if (!output_ || !output_->printed()) return;
  notes_->add(log_->path().empty() ? std::string("it writes to standard output")
                                   : fmt::format("it writes to standard output; see {}", log_->path().string()));
}

std::vector<std::string> Worker::notes() const {
  note_what_was_printed();
  return notes_->all();
}

void Worker::launch() {
  if (carrier_) return;
  try {
    if (!log_) log_ = std::make_shared<Log>(options_.log_folder, id_);
    if (!output_) output_ = std::make_unique<Output>(*log_);
    output_->mark();
    carrier_ = starter_(*output_);
  } catch (const std::system_error& error) {
    throw KernelLoadError(fmt::format("{}: cannot be started: {}", id_, error.what()));
  }
}

std::string Worker::first_manifest() {
  launch();
  Exchange first = carrier_->manifest(Clock::now() + options_.first_reply);
  if (first.status == CallStatus::ok) {
    load_finding_ = std::move(first.message);
    return manifest_ = std::move(first.body);
  }
  settle(first.status, first.message, options_.first_reply);
  std::string last = output_->last_line();
  if (!last.empty()) last = fmt::format("; its standard error ends with: {}", last);
  throw KernelLoadError(fmt::format("{}: cannot be loaded: {}{}", id_, first.message, last));
}

/// Completes a status and message that a carrier gave, and ends the process if it is of no more use.
void Worker::settle(CallStatus& status, std::string& message, std::chrono::milliseconds limit) {
  if (status != CallStatus::died && status != CallStatus::timed_out && status != CallStatus::malformed) return;
  // A process that answers wrongly is not started again: a kernel whose every answer has another shape costs seconds.
  if (status == CallStatus::malformed && carrier_->is_in_step()) return;
  if (status == CallStatus::timed_out && carrier_->has_ended()) status = CallStatus::died;
  const auto detail = message.empty() ? std::string() : fmt::format(" ({})", message);
  if (status == CallStatus::died) {
    message = fmt::format("its process {}{}", carrier_->end(Clock::now() + grace), detail);
    if (message.starts_with("its process was still running")) {
      message = fmt::format("it closed its output and went on running{}", detail);
    }
  } else {
    if (status == CallStatus::timed_out) {
      const std::string_view stopped = carrier_->is_stopped() ? "; a signal has stopped its process" : "";
      message = fmt::format("no reply within {}{}{}", seconds(limit), detail, stopped);
    }
    static_cast<void>(carrier_->end(Clock::time_point::min()));
  }
  carrier_.reset();
}

/// A kernel that ran out of memory says so in its own words, of which none is the limit.
void Worker::name_memory_limit(CallStatus status, std::string& message) const {
  if (options_.memory == 0 || (status != CallStatus::died && status != CallStatus::failed)) return;
  if (!tells_of_memory(message)) {
    const std::string last = status == CallStatus::died && output_ ? output_->last_line() : std::string();
    if (!tells_of_memory(last)) return;
    message += fmt::format("; its standard error ends with: {}", last);
  }
  message += fmt::format("; its process may hold {} of memory (--memory)", size_text(options_.memory));
}

/// A process that takes the place of one that ended; what went wrong, if it did.
std::optional<Reply> Worker::restart() {
  try {
    launch();
  } catch (const UsageError&) {
    throw;  // no fault of the kernel's
  } catch (const std::exception& error) {
    return Reply{CallStatus::died, fmt::format("it could not be started again: {}", error.what()), {}, {}};
  }
  Exchange first = carrier_->manifest(Clock::now() + options_.first_reply);
  if (first.status == CallStatus::ok && first.body == manifest_) return std::nullopt;
  if (first.status == CallStatus::ok) {
    first.status = CallStatus::malformed;
    first.message = "its manifest is not the one it gave before";
  }
  settle(first.status, first.message, options_.first_reply);
  if (carrier_) {
    static_cast<void>(carrier_->end(Clock::time_point::min()));
    carrier_.reset();
  }
  return Reply{first.status, fmt::format("started again, {}", first.message), {}, {}};
}

/// One reply of a running process, waited for as long as the kernel's pace says.
Reply Worker::timed(const Case& c, const Wanted& wanted) {
  const std::chrono::milliseconds limit = pace_->limit_of(c);
  const Clock::time_point start = Clock::now();
  // One call with a conditional argument would copy the case, which may be large.
  Reply reply = is_in_cache(c) ? carrier_->call(laid_out_in_cache(c), wanted, start + limit)
                               : carrier_->call(c, wanted, start + limit);
  const Clock::duration took = Clock::now() - carrier_->begun(start);
  if (reply.status == CallStatus::ok) pace_->answered(c, took);
  const bool stopped = reply.status == CallStatus::timed_out && carrier_->is_stopped();
  settle(reply.status, reply.message, limit);
  // What ended sooner was interrupted.
  if (reply.status != CallStatus::timed_out || stopped || took < limit) return reply;
  if (const std::string why = pace_->late(c, took); !why.empty()) {
    reply.status = CallStatus::late;
    reply.message += ' ' + why;
  }
  return reply;
}

Reply Worker::call(const Case& c, const Wanted& wanted) {
  if (std::string why = pace_->why_not_asked(c); !why.empty()) return {CallStatus::too_slow, std::move(why), {}, {}};
  if (!carrier_) {
    if (auto trouble = restart()) return *std::move(trouble);
  }
  Reply reply;
  try {
    reply = timed(c, wanted);
  } catch (const std::bad_alloc&) {
    // Our own memory ran out, perhaps in the middle of a reply: what the process would send next answers nothing.
    static_cast<void>(carrier_->end(Clock::time_point::min()));
    carrier_.reset();
    throw;
  }
  if (reply.status != CallStatus::ok) name_memory_limit(reply.status, reply.message);
  output_->drain();
  return reply;
}

}  // namespace attest::process
