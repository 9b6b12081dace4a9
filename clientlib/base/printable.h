// SPDX-License-Identifier: Apache-2.0
// Text from outside, made safe for a terminal and for a line of a log.
//
// Characters that could forge a line, control a terminal or turn the order of what is read become escapes as in JSON:
// "\n", "\u001b". These are control characters (C0, DEL and C1), the separators of lines and paragraphs, and marks of
// direction (bidi). What is not UTF-8 becomes "\ufffd". All else stays. Pure functions on values.
#pragma once

#include <string>
#include <string_view>

namespace kube {

// One line: line feeds are escaped, too.
std::string Printable(std::string_view text);
// Line feeds stay.
std::string PrintableLines(std::string_view text);
// As Printable(), with a backslash before each of the characters in `quoted`.
void AppendPrintable(std::string& out, std::string_view text, std::string_view quoted = {});
// Whether Printable() changes nothing.
bool IsPrintable(std::string_view text);

}  // namespace kube
