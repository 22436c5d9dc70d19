// Journals for the tests of what is written from one: a run that held, one with findings, one of hostile names.
#pragma once

#include <cstdint>
#include <string>

#include "core/journal/journal.h"

namespace attest::fake {

Tally tally_of(std::int64_t held, std::int64_t violated = 0, std::int64_t skipped = 0, std::int64_t inconclusive = 0);

Journal ended_journal();

void add_batch(Journal& journal, const Subject& subject, const Tally& tally);

void add_finding(Journal& journal, const Subject& subject, const std::string& reason, std::int64_t k = 7,
                 Outcome outcome = Outcome::violated);

/// A kernel that violates one property, holds one, has one skipped and one undecided; a right one; one that did not
/// start.
Journal mixed_journal();

/// `evil` as the name of everything that has one, as a reason and as a note.
Journal hostile_journal(const std::string& evil);

}  // namespace attest::fake
