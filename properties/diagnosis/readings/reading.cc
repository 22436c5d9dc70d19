#include "properties/diagnosis/readings/reading.h"

#include "properties/diagnosis/variants/alibi_misreadings.h"
#include "properties/diagnosis/variants/chunk_misreadings.h"
#include "properties/diagnosis/variants/descale_misreadings.h"
#include "properties/diagnosis/variants/dropout_misreadings.h"
#include "properties/diagnosis/variants/sink_misreadings.h"
#include "properties/diagnosis/variants/softcap_misreadings.h"
#include "properties/diagnosis/variants/window_misreadings.h"

namespace attest {

void Readings::add(std::string words, Case problem, std::function<Tensor(const Tensor&)> rearranged) {
  if (!rearranged && static_cast<const Problem&>(problem) == static_cast<const Problem&>(c_)) return;
  found_.push_back({.words = std::move(words), .problem = std::move(problem), .rearranged = std::move(rearranged)});
}

void Readings::add_sized(std::string words, std::int64_t size, Case problem) {
  const std::size_t before = found_.size();
  add(std::move(words), std::move(problem));
  if (found_.size() > before) found_.back().size = size;
}

void Readings::add_sight_of(MisreadSight reading) {
  if (reading.problem) return add_sized(std::move(reading.words), reading.size, *std::move(reading.problem));
  found_.push_back({.words = std::move(reading.words), .size = reading.size, .is_told = false, .problem = c_});
}

namespace {

void read_variants(Readings& r) {
  const Case& c = r.problem();
  for (auto* const misread : {misread_windows, misread_chunks})
    for (MisreadSight& reading : misread(c)) r.add_sight_of(std::move(reading));
  for (MisreadSinks& reading : misread_sinks(c)) r.add(std::move(reading.words), std::move(reading.problem));
  for (MisreadSoftcap& reading : misread_softcaps(c)) r.add(std::move(reading.words), std::move(reading.problem));
  for (MisreadDropout& reading : misread_dropout(c))
    r.add_sized(std::move(reading.words), reading.size, std::move(reading.problem));
  for (MisreadSlopes& reading : misread_slopes(c))
    r.add_sized(std::move(reading.words), reading.size, std::move(reading.problem));
  for (MisreadDescale& reading : misread_descale(c))
    r.add_sized(std::move(reading.words), reading.size, std::move(reading.problem));
}
}  // namespace

std::vector<MisreadProblem> readings_of(const Case& c) {
  Readings r(c);
  read_scores(r);
  if (c.mask().present()) read_masks(r);
  read_causal_forms(r);
  read_variants(r);
  read_windows_and_tiles(r);
  read_heads(r);
  read_batch_entries(r);
  read_keys(r);
  read_columns(r);
  read_memory(r);
  return r.take();
}

Tensor gathered(const Tensor& tensor, const std::function<std::int64_t(std::int64_t e)>& from) {
  Tensor other = tensor;
  for (std::int64_t e = 0; e < tensor.elements(); ++e) other.set(e, tensor[from(e)]);
  return other;
}

}  // namespace attest
