// SPDX-License-Identifier: Apache-2.0
// Views of a gang, put together in one line. Times are seconds relative to the view's now.
#pragma once

#include <string>
#include <utility>

#include "controllers/gang/gang_plan.h"
#include "controllers/gang/gang_status.h"
#include "tests/kit/conditions.h"
#include "tests/kit/moment.h"
#include "tests/kit/shapes.h"

namespace grus::testing {

class GangBuilder {
 public:
  // All members and places share it, as the ledger has them share it.
  static ShapePtr Shape() {
    static const ShapePtr kShape = GpuShape(1);
    return kShape;
  }

  explicit GangBuilder(int min_member) {
    group_.metadata.name = "gang";
    group_.metadata.ns = "team-a";
    group_.metadata.generation = 1;
    group_.metadata.creation_timestamp = At(-1000);
    group_.spec.min_member = min_member;
    view_.key = "team-a/gang";
    view_.now = At(0);
  }

  GangBuilder& PlannedByOwner() {
    view_.is_planned_by_owner = true;
    return *this;
  }
  GangBuilder& Gated(int count, const std::string& nominated = {}) {
    return Add(count, MemberState::kGated, [&](Member& m) { m.nominated = nominated; });
  }
  GangBuilder& Lifted(int count, int lifted_at = -1) {
    return Add(count, MemberState::kLifted, [&](Member& m) { m.lifted_at = At(lifted_at); });
  }
  GangBuilder& Bound(int count, int lifted_at = -1) {
    return Add(count, MemberState::kBound, [&](Member& m) { m.lifted_at = At(lifted_at); });
  }
  GangBuilder& Running(int count) {
    return Add(count, MemberState::kBound, [](Member& m) {
      m.lifted_at = At(-900);
      m.is_running = true;
    });
  }
  GangBuilder& Ended(int count, MemberState state) {
    return Add(count, state, [](Member&) {});
  }
  // Changes the members that were added last, all of them so far.
  template <typename F>
  GangBuilder& Each(F change) {
    for (Member& member : view_.members) change(member);
    return *this;
  }
  template <typename F>
  GangBuilder& Group(F change) {
    change(group_);
    return *this;
  }
  GangBuilder& Phase(const std::string& phase, GangReason reason) {
    group_.status.phase = phase;
    group_.status.observed_generation = 1;
    kube::SetCondition(
        group_.status.conditions,
        {.type = "Ready", .status = "False", .reason = std::string(ToString(reason)), .message = "before"},
        At(-500).value);
    return *this;
  }
  GangBuilder& Places(int count, const std::string& node = "node-0") {
    for (int i = 0; i < count; ++i) view_.places.push_back({node, Shape()});
    return *this;
  }
  GangBuilder& Pins() {
    view_.must_pin = true;
    return *this;
  }
  GangBuilder& Scheduler(const std::string& holder) {
    view_.scheduler = holder;
    return *this;
  }
  GangBuilder& Competitors(Safety safety = Safety::kSafe) {
    view_.must_nominate = true;
    view_.safety = safety;
    return *this;
  }

  GangView Build() const {
    GangView view = view_;
    view.group = std::make_shared<const api::PodGroup>(group_);
    view.demand = NeedsOf(view);
    return view;
  }

 private:
  template <typename F>
  GangBuilder& Add(int count, MemberState state, F change) {
    for (int i = 0; i < count; ++i) {
      Member member;
      member.ordinal = static_cast<int>(view_.members.size());
      member.name = "gang-" + std::to_string(member.ordinal);
      member.uid = "uid-" + std::to_string(member.ordinal);
      member.state = state;
      member.has_controller = true;
      member.owner = "team-a/gang";
      if (member.IsUnbound()) member.shape = Shape();
      change(member);
      view_.members.push_back(std::move(member));
    }
    return *this;
  }

  api::PodGroup group_;
  GangView view_;
};

// Ordinals of the members whose gates are lifted, and of those that are deleted.
inline std::vector<int> Lifts(const GangPlan& plan) {
  std::vector<int> ordinals;
  for (const LiftedGate& lifted : plan.lift) ordinals.push_back(lifted.member->ordinal);
  return ordinals;
}
inline std::vector<int> Ends(const GangPlan& plan) {
  std::vector<int> ordinals;
  for (const Member* member : plan.end) ordinals.push_back(member->ordinal);
  return ordinals;
}
inline std::string ReasonOf(const GangPlan& plan) { return kit::ReasonIn(plan.status.conditions); }
inline std::string MessageOf(const GangPlan& plan) { return kit::MessageIn(plan.status.conditions); }

}  // namespace grus::testing
