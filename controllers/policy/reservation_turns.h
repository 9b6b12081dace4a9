// SPDX-License-Identifier: Apache-2.0
// For how long a gang may keep room when nobody knows when it can start.
//
// A turn lasts ten minutes. Then gangs of its namespace reserve nothing for as long, and the next turn of that gang is
// twice as long, a day at most; until the gang has started, or its last turn is as long ago as it lasted. Times are
// Unix seconds; gangs go by their keys in the ledger.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace grus {

class ReservationTurns {
 public:
  static constexpr std::int64_t kFirst = 600, kLongest = 24 * 3600;

  // How long the next turn of the gang lasts.
  std::int64_t LengthFor(std::string_view gang, std::int64_t now) const {
    const Turn& last = LastOf(gang, now);
    return last.gang == gang ? std::min(2 * last.length, kLongest) : kFirst;
  }
  // From when on gangs of its namespace may reserve; 0: at any time.
  std::int64_t ReservesFrom(std::string_view gang, std::int64_t now) const { return LastOf(gang, now).reserves_from; }

  void End(const std::string& gang, std::int64_t length, std::int64_t now) {
    std::erase_if(turns_, [now](const auto& turn) { return turn.second.IsForgotten(now); });
    turns_[std::string(NamespaceOf(gang))] = {gang, length, now + length};
  }
  void Started(std::string_view gang) {
    const auto turn = turns_.find(NamespaceOf(gang));
    if (turn != turns_.end() && turn->second.gang == gang) turns_.erase(turn);
  }

 private:
  // The last of a namespace that ended.
  struct Turn {
    std::string gang;
    std::int64_t length = 0, reserves_from = 0;
    bool IsForgotten(std::int64_t now) const { return now >= reserves_from + length; }
  };

  // Of "namespace/name", or of that with an API group in front.
  static std::string_view NamespaceOf(std::string_view gang) {
    gang = gang.substr(0, gang.rfind('/'));
    return gang.substr(gang.rfind('/') + 1);
  }
  const Turn& LastOf(std::string_view gang, std::int64_t now) const {
    static const Turn kNone;
    const auto it = turns_.find(NamespaceOf(gang));
    return it == turns_.end() || it->second.IsForgotten(now) ? kNone : it->second;
  }

  std::map<std::string, Turn, std::less<>> turns_;  // By namespace.
};

}  // namespace grus
