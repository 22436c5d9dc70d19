// Values by subject.
#pragma once

#include <map>
#include <utility>

#include "core/journal/journal.h"

namespace attest {

/// A map of subjects for which journals ask: a run writes its subjects in turn, so what followed a subject before is
/// looked at first.
template <class Value>
class SubjectMap {
  struct Node {
    Value value{};
    std::pair<const Subject, Node>* next = nullptr;  ///< what was asked for after this one the last time
  };

 public:
  /// Null where the subject is not there.
  [[nodiscard]] Value* find(const Subject& subject) {
    if (turn_ != nullptr && turn_->second.next != nullptr && turn_->second.next->first == subject)
      return &(turn_ = turn_->second.next)->second.value;
    const auto found = nodes_.find(subject);
    return found == nodes_.end() ? nullptr : &step_to(*found);
  }
  /// Makes a value where there is none.
  [[nodiscard]] Value& at(const Subject& subject) {
    if (Value* const found = find(subject)) return *found;
    return step_to(*nodes_.try_emplace(subject).first);
  }
  /// In the order of subjects.
  template <class Use>
  void for_each(Use use) {
    for (auto& [subject, node] : nodes_) use(subject, node.value);
  }

 private:
  Value& step_to(std::pair<const Subject, Node>& place) {
    if (turn_ != nullptr) turn_->second.next = &place;
    turn_ = &place;
    return place.second.value;
  }

  std::map<Subject, Node> nodes_;
  std::pair<const Subject, Node>* turn_ = nullptr;  ///< what was asked for last
};

}  // namespace attest
