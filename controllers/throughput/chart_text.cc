// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "controllers/throughput/chart.h"

namespace grus {
namespace {

constexpr int kNarrowest = 68;                 // The legend's width.
constexpr int kDotsAcross = 2, kDotsDown = 4;  // Of a braille character.

// A grid of characters: letters, braille dots, shade and marks. The last one drawn stays, but dots share a cell.
class Canvas {
 public:
  Canvas(int columns, int rows) : columns_(columns), cells_(static_cast<std::size_t>(columns * rows)) {}

  void Shade(int column, int row) { At(column, row).is_shaded = true; }
  void Mark(int column, int row, const char* mark) { At(column, row).mark = mark; }
  // In dots from the top left.
  void Dot(int x, int y) {
    constexpr std::uint8_t kBits[kDotsDown][kDotsAcross] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    At(x / kDotsAcross, y / kDotsDown).dots |= kBits[y % kDotsDown][x % kDotsAcross];
  }

  std::string Row(int row) const {
    std::string text;
    for (int column = 0; column < columns_; ++column) {
      const Cell& cell = cells_[Index(column, row)];
      if (cell.mark) {
        text += cell.mark;
      } else if (cell.dots) {  // U+2800 and the dots' bits, in UTF-8.
        text += '\xE2';
        text += static_cast<char>(0xA0 | (cell.dots >> 6));
        text += static_cast<char>(0x80 | (cell.dots & 0x3F));
      } else {
        text += cell.is_shaded ? "░" : " ";
      }
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

 private:
  struct Cell {
    const char* mark = nullptr;
    std::uint8_t dots = 0;
    bool is_shaded = false;
  };

  std::size_t Index(int column, int row) const { return static_cast<std::size_t>(row * columns_ + column); }
  Cell& At(int column, int row) { return cells_[Index(column, row)]; }

  int columns_;
  std::vector<Cell> cells_;
};

// From sizes and throughputs to the dots of the canvas.
struct Scale {
  double most_gpus = 1, most_throughput = 1;
  int columns = 1, rows = 1;

  int X(double gpus) const { return Clamp(gpus / most_gpus, columns * kDotsAcross); }
  int Y(double throughput) const { return Clamp(1 - throughput / most_throughput, rows * kDotsDown); }
  static int Clamp(double share, int dots) {
    return static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * (dots - 1)));
  }
};

double Between(double x, double x0, double y0, double x1, double y1) { return y0 + (y1 - y0) * (x - x0) / (x1 - x0); }

void DrawPiece(Canvas& canvas, const Scale& scale, const CurvePoint& from, const CurvePoint& to) {
  const bool has_answer = from.source != PredictionSource::kUnknown && to.source != PredictionSource::kUnknown;
  const int first = scale.X(from.size.replicas), last = scale.X(to.size.replicas);
  int previous = scale.Y(from.throughput);
  for (int x = first; x <= last; ++x) {
    const auto at = [&](double y0, double y1) { return first == last ? y1 : Between(x, first, y0, last, y1); };
    const int top = scale.Y(at(from.high, to.high)) / kDotsDown;
    const int bottom = scale.Y(at(from.low, to.low)) / kDotsDown;
    for (int row = top; row <= bottom; ++row) canvas.Shade(x / kDotsAcross, row);
    if (!has_answer) continue;
    const int y = scale.Y(at(from.throughput, to.throughput));
    for (int dot = std::min(y, previous); dot <= std::max(y, previous); ++dot) canvas.Dot(x, dot);
    previous = y;
  }
}

const char* MarkOf(PredictionSource source) {
  switch (source) {
    case PredictionSource::kMeasured: return "●";
    case PredictionSource::kInterpolated: return "○";
    case PredictionSource::kExtrapolated: return "◇";
    case PredictionSource::kUnknown: break;
  }
  return "?";
}

std::string PadLeft(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

// Numbers below the axis, few enough not to run into each other.
std::string GpuLabels(const Scale& scale, std::size_t margin) {
  std::string line(margin + 1 + static_cast<std::size_t>(scale.columns), ' ');
  for (const double mark : AxisMarks(scale.most_gpus, std::max(2, scale.columns / 8))) {
    const std::string text = ShortNumber(mark);
    const auto end = margin + 1 + static_cast<std::size_t>(scale.X(mark) / kDotsAcross) + 1;
    const std::size_t begin = std::max(margin + 1, end - text.size());
    line.replace(begin, text.size(), text);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string ChartAsText(const std::vector<CurvePoint>& curve, const ChartOptions& options) {
  if (curve.empty()) return "";
  constexpr std::size_t kMargin = 6;  // For the numbers left of the axis.
  constexpr int kUnit = 5;            // For " GPUs" right of it.
  Scale scale;
  scale.columns = std::max(options.width, kNarrowest) - static_cast<int>(kMargin) - 1 - kUnit;
  scale.rows = std::max(options.height, 10) - 5;
  scale.most_gpus = curve.back().size.replicas;
  scale.most_throughput = HighestShown(curve);

  Canvas canvas(scale.columns, scale.rows);
  const double per_gpu = curve.front().throughput / curve.front().size.replicas;
  for (int x = 0; x < scale.columns * kDotsAcross; x += 4) {  // Perfect scaling, dotted.
    const double perfect = per_gpu * scale.most_gpus * x / (scale.columns * kDotsAcross - 1);
    if (perfect <= scale.most_throughput) canvas.Dot(x, scale.Y(perfect));
  }
  for (std::size_t i = 1; i < curve.size(); ++i) DrawPiece(canvas, scale, curve[i - 1], curve[i]);
  for (const CurvePoint& point : curve) {
    const int column = scale.X(point.size.replicas) / kDotsAcross;
    canvas.Mark(column, scale.Y(point.throughput) / kDotsDown, MarkOf(point.source));
  }

  std::vector<std::string> labels(static_cast<std::size_t>(scale.rows));
  for (const double mark : AxisMarks(scale.most_throughput, std::max(2, scale.rows / 3))) {
    labels[static_cast<std::size_t>(scale.Y(mark) / kDotsDown)] = ShortNumber(mark);
  }
  const bool shows_knee = options.knee && *options.knee >= 1 && *options.knee <= curve.back().size.replicas;
  std::string text = options.title + "\n" + options.unit;
  if (shows_knee) text += "    ▲ knee: " + std::to_string(*options.knee) + (*options.knee == 1 ? " GPU" : " GPUs");
  text += "\n";
  for (int row = 0; row < scale.rows; ++row) {
    const std::string& label = labels[static_cast<std::size_t>(row)];
    text += PadLeft(label, kMargin) + (label.empty() ? "│" : "┤") + canvas.Row(row) + "\n";
  }
  text += std::string(kMargin, ' ') + "└";
  const int knee_column = shows_knee ? scale.X(*options.knee) / kDotsAcross : -1;
  for (int column = 0; column < scale.columns; ++column) text += column == knee_column ? "▲" : "─";
  text += "\n" + GpuLabels(scale, kMargin) + " GPUs\n";
  text += "● measured ○ interpolated ◇ extrapolated ? unknown ░ 90 % ⠄⠄ linear\n";
  return text;
}

}  // namespace grus
