#include "properties/diagnosis/variants/probes/probe_sinks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "core/kernel/limits.h"
#include "core/oracle/oracle.h"
#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "properties/diagnosis/variants/sink_misreadings.h"
#include "properties/language/answer.h"

namespace attest {
namespace {

constexpr std::string_view as_meant = "as it is meant";

class SinkProber {
 public:
  explicit SinkProber(ProbeQuestions& probe) : probe_(probe) {}

  void run() {
    if (const std::string why = why_unsupported(probe_.manifest(), problem()); !why.empty())
      return probe_.note("sinks", "yes", "not asked: " + why, false, false);
    const Settled settled = probe_.settle([&] {
      const Case c = problem();
      Question asked{c, {{std::string(as_meant), c}}};
      for (MisreadSinks& reading : misread_sinks(c))
        if (!(reading.problem == c))
          asked.readings.push_back({"as if " + std::move(reading.words), std::move(reading.problem)});
      return asked;
    });
    const bool does = settled.is(as_meant);
    probe_.note("sinks", "yes", settled.text(), !does && settled.status != CallStatus::unsupported, false);
    if (!does) {
      probe_.result().manifest.variants.erase(std::string(sink_variant.name));
      return;
    }
    ask_lse();
    ask_maximum();
  }

 private:
  [[nodiscard]] VariantTerms& terms() { return probe_.result().manifest.variants.find(sink_variant.name)->second; }

  /// Of as many heads to a key-value head as there can be; sinks of multiples of 1/8 near the scores, another one to
  /// each head.
  Case problem() {
    ProbeSize s = probe_.size();
    if (allows_heads(probe_.manifest(), 4, 2)) s.heads = 4, s.kv_heads = 2;
    Case c = probe_.plain(s);
    const std::vector<DType>& formats = probe_.manifest().variants.find(sink_variant.name)->second.dtypes;
    Tensor sinks(formats.front(), {s.heads});
    for (std::int64_t h = 0; h < s.heads; ++h)
      sinks.set(h, static_cast<double>((3 * h + 5 * round_) % 11) / 8 - 0.25 + static_cast<double>(h % 2));
    ++round_;
    c[Slot::sink] = std::move(sinks);
    return c;
  }

  /// With the sink, or of the keys alone. What a manifest says is without it comes here with it (lse_convention.h).
  void ask_lse() {
    if (!probe_.manifest().lse) return;
    const bool declared_with = probe_.manifest().variants.find(sink_variant.name)->second.lse_has_sink;
    std::set<std::string> found;
    for (int round = 0; round < probe_rounds; ++round) {
      const Case c = problem();
      const Reply reply = probe_.kernel().run(c, probe_.dtype(), /*want_lse=*/true);
      if (reply.status != CallStatus::ok || !reply.lse.present()) {
        found = {reply.status == CallStatus::ok ? "none" : ending_text(reply.status, reply.message)};
        break;
      }
      Case bare = c;
      drop_variant(bare, sink_variant.name);
      const AttentionBounds with = attention_bounds(c, probe_.arithmetic()),
                            without = attention_bounds(bare, probe_.arithmetic());
      bool has_it = true, lacks_it = true, has_it_twice = true;
      for (std::int64_t row = 0; row < reply.lse.elements(); ++row) {
        const RowBound& w = with.rows[static_cast<std::size_t>(row)];
        const double sink = c[Slot::sink][row / queries_of(c) % heads_of(c)];
        const double allowed = w.lse_allowed + w.lse_certificate + 0x1p-49 * (1 + std::fabs(w.lse));
        const auto near = [&](double lse) { return std::fabs(reply.lse[row] - lse) <= allowed; };
        has_it = has_it && near(w.lse);
        lacks_it = lacks_it && near(without.rows[static_cast<std::size_t>(row)].lse);
        has_it_twice = has_it_twice && near(w.lse + std::log1p(std::exp(sink - w.lse)));
      }
      found.insert(has_it                           ? (declared_with ? "with" : "without")
                   : declared_with && lacks_it      ? "without"
                   : !declared_with && has_it_twice ? "with"
                                                    : "another number");
    }
    const std::string declared = declared_with ? "with" : "without";
    const bool as_declared = found == std::set{declared};
    probe_.note("log-sum-exp beside a sink", declared, fmt::format("{}", fmt::join(found, " or ")), !as_declared,
                false);
    if (found == std::set<std::string>{"with"} || found == std::set<std::string>{"without"})
      terms().lse_has_sink = *found.begin() == "with";
  }

  /// 120 above every score: e^120 is beyond the range of f32.
  void ask_maximum() {
    if (probe_.arithmetic().score_sums != DType::f32) return;
    Case c = problem();
    c[Slot::sink] = Tensor(c[Slot::sink].dtype(), c[Slot::sink].shape());
    for (std::int64_t h = 0; h < heads_of(c); ++h) c[Slot::sink].set(h, 120);
    const bool declared = probe_.manifest().variants.find(sink_variant.name)->second.in_max;
    const Reply reply = probe_.kernel().run(c, probe_.dtype(), probe_.manifest().lse);
    bool finite = reply.status == CallStatus::ok;
    for (std::int64_t e = 0; finite && e < reply.out.elements(); ++e) finite = std::isfinite(reply.out[e]);
    for (std::int64_t row = 0; finite && reply.lse.present() && row < reply.lse.elements(); ++row)
      finite = std::isfinite(reply.lse[row]);
    const auto words = [](bool in_max) { return in_max ? "numbers" : "overflows"; };
    const std::string found = reply.status == CallStatus::ok ? words(finite) : ending_text(reply.status, reply.message);
    probe_.note("a sink 120 above every score", words(declared), found,
                declared && !finite && reply.status != CallStatus::unsupported, false);
    terms().in_max = declared && finite;
  }

  ProbeQuestions& probe_;
  std::int64_t round_ = 0;
};

}  // namespace

void ask_sinks(ProbeQuestions& probe) {
  if (probe.operation() != Operation::attention) return;
  if (!probe.manifest().variants.contains(sink_variant.name))
    return probe.note("sinks", "no", "not asked: the manifest's \"variants\" does not list them", false, false);
  SinkProber(probe).run();
}

}  // namespace attest
