// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/command_answer.h"

#include <ostream>

#include "clientlib/base/printable.h"

namespace grus {

int SayWrongUse(std::ostream& error, const std::string& what) {
  error << "kubectl grus: " << kube::Printable(what) << "; see kubectl grus --help\n";
  return kCommandWrongUse;
}

int SayFailed(std::ostream& error, const kube::Error& why) {
  error << "kubectl grus: " << kube::Printable(why.message()) << "\n";
  return kCommandFailed;
}

int Finish(std::ostream& out, std::ostream& error, const std::string& answer) {
  out << kube::PrintableLines(answer) << std::flush;
  if (!out) return SayFailed(error, {kube::ErrorCode::kUnavailable, "the output could not be written"});
  return 0;
}

}  // namespace grus
