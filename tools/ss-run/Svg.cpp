//===- Svg.cpp - The ranks of a run as a picture --------------------------===//

#include "Svg.h"

#include "SvgText.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace ss_run;

namespace {

constexpr int left = 150, top = 64, plotWidth = 720, rowHeight = 16;
constexpr int rowGap = 2, layerGap = 8, legendWidth = 110;
constexpr int maxColumns = 360;
constexpr int levels = 16;
/// A state held dense has a colour of its own, beyond the levels.
constexpr int denseLevel = levels;

struct Color {
  int red, green, blue;
};
/// Anchors of a scale that is ordered for the eye, in print and for the
/// colour-blind, and stands out from white and from black.
constexpr Color anchors[] = {
    {68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}};
constexpr int anchorCount = sizeof(anchors) / sizeof(anchors[0]);

std::string colorOf(int level) {
  const double place =
      static_cast<double>(level) / (levels - 1) * (anchorCount - 1);
  const int lower = std::min(static_cast<int>(place), anchorCount - 2);
  const double share = place - lower;
  auto mix = [&](int Color::*part) {
    return static_cast<int>(std::lround(anchors[lower].*part * (1 - share) +
                                        anchors[lower + 1].*part * share));
  };
  char text[16];
  std::snprintf(text, sizeof(text), "#%02x%02x%02x", mix(&Color::red),
                mix(&Color::green), mix(&Color::blue));
  return text;
}

std::string number(double value) { return svgNumber(value); }

/// Draws into one string; knows where rows and columns lie.
class HeatMap {
public:
  HeatMap(const RankHistory &history, const std::string &subtitle)
      : history(history), subtitle(subtitle),
        steps(static_cast<int>(history.steps.size())),
        columns(std::min(steps, maxColumns)) {
    int y = top;
    for (const ProbedLayer &layer : history.layers) {
      for (int head = 0; head < layer.heads; ++head, y += rowHeight)
        rowTops.push_back(y);
      y += layerGap;
    }
    bottom = rowTops.empty() ? top + rowHeight : y - layerGap;
    for (const auto &step : history.steps)
      for (int32_t rank : step)
        largest = std::max(largest, rank);
  }

  std::string draw() {
    drawHead();
    drawCells();
    drawRowLabels();
    drawTimeAxis();
    drawLegend();
    svg += "</svg>\n";
    return std::move(svg);
  }

private:
  void text(double x, double y, const char *anchor, const std::string &content,
            const char *style = "") {
    svg += "<text x=\"" + number(x) + "\" y=\"" + number(y) +
           "\" text-anchor=\"" + anchor + "\"" + style + ">" + escapeXml(content) +
           "</text>\n";
  }

  void drawHead() {
    const int width = left + plotWidth + legendWidth, height = bottom + 56;
    const std::string size =
        std::to_string(width) + "\" height=\"" + std::to_string(height);
    svg += "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + size +
           "\" viewBox=\"0 0 " + std::to_string(width) + " " +
           std::to_string(height) +
           "\" role=\"img\" font-family=\"sans-serif\" font-size=\"11\">\n"
           "<title>Stored rank of every state over time</title>\n"
           "<style>\n"
           ".page{fill:#ffffff}text{fill:#1f2328}.axis{stroke:#59636e;"
           "fill:none}.d{fill:#9a9a9a}\n";
    for (int level = 0; level < levels; ++level)
      svg += ".c" + std::to_string(level) + "{fill:" + colorOf(level) + "}";
    svg += "\n@media (prefers-color-scheme: dark){.page{fill:#0d1117}"
           "text{fill:#e6edf3}.axis{stroke:#9198a1}.d{fill:#6e7681}}\n"
           "</style>\n<rect class=\"page\" width=\"" +
           size + "\"/>\n";
    text(left, 24, "start", "Stored rank of every state over time",
         " font-size=\"15\" font-weight=\"bold\"");
    text(left, 44, "start", subtitle);
  }

  /// The level of a row in a column: its steps' largest rank.
  int levelAt(size_t row, int column) const {
    const int begin = static_cast<int>(int64_t(steps) * column / columns);
    const int end = static_cast<int>(int64_t(steps) * (column + 1) / columns);
    int rank = 0;
    for (int step = begin; step < end; ++step) {
      if (history.steps[step][row] < 0)
        return denseLevel;
      rank = std::max<int>(rank, history.steps[step][row]);
    }
    return largest ? (rank * (levels - 1) + largest / 2) / largest : 0;
  }

  static std::string className(int level) {
    return level == denseLevel ? "d" : "c" + std::to_string(level);
  }

  /// One path per level holds all its cells, neighbours in a row joined.
  void drawCells() {
    std::string paths[levels + 1];
    const double width = static_cast<double>(plotWidth) / std::max(columns, 1);
    for (size_t row = 0; row < rowTops.size(); ++row)
      for (int column = 0; column < columns;) {
        const int level = levelAt(row, column), begin = column;
        while (column < columns && levelAt(row, column) == level)
          ++column;
        const std::string length = number((column - begin) * width);
        paths[level] += "M" + number(left + begin * width) + " " +
                        std::to_string(rowTops[row]) + "h" + length + "v" +
                        std::to_string(rowHeight - rowGap) + "h-" + length +
                        "z";
      }
    for (int level = 0; level <= levels; ++level)
      if (!paths[level].empty())
        svg += "<path class=\"" + className(level) +
               "\" shape-rendering=\"crispEdges\" d=\"" + paths[level] +
               "\"/>\n";
  }

  void drawRowLabels() {
    size_t row = 0;
    for (const ProbedLayer &layer : history.layers)
      for (int head = 0; head < layer.heads; ++head, ++row)
        text(left - 8, rowTops[row] + rowHeight - 5, "end",
             (head ? ""
                   : "layer " + std::to_string(layer.index) + " " + layer.type +
                         "  ") +
                 "head " + std::to_string(head));
  }

  void drawTimeAxis() {
    const double y = bottom + 4;
    svg += "<path class=\"axis\" d=\"M" + std::to_string(left) + " " +
           number(y) + "h" + std::to_string(plotWidth);
    // About eight ticks at 1, 2 or 5 times a power of ten.
    double distance = std::pow(10, std::floor(std::log10(std::max(steps, 1))));
    for (double share : {0.1, 0.2, 0.5})
      if (steps / (distance * share) <= 10) {
        distance *= share;
        break;
      }
    distance = std::max(distance, 1.0);
    auto place = [&](double step) { return left + plotWidth * step / steps; };
    for (double step = 0; step <= steps; step += distance)
      svg += "M" + number(place(step)) + " " + number(y) + "v5";
    svg += "\"/>\n";
    for (double step = 0; step <= steps; step += distance)
      text(place(step), y + 18, "middle", number(step));
    text(left + plotWidth / 2.0, y + 38, "middle", "tokens decoded");
  }

  void drawLegend() {
    const int x = left + plotWidth + 24, barTop = top + 16;
    const int barHeight = std::max(bottom - barTop - 40, 64);
    text(x, top + 6, "start", "stored rank");
    const double step = static_cast<double>(barHeight) / levels;
    for (int level = 0; level < levels; ++level)
      svg += "<rect class=\"" + className(level) +
             "\" shape-rendering=\"crispEdges\" x=\"" + std::to_string(x) +
             "\" y=\"" + number(barTop + barHeight - (level + 1) * step) +
             "\" width=\"14\" height=\"" + number(step + 0.5) + "\"/>\n";
    for (int tick = 0; tick <= 4; ++tick)
      text(x + 20, barTop + barHeight * (1 - tick / 4.0) + 4, "start",
           number(std::round(largest * tick / 4.0)));
    const int denseTop = barTop + barHeight + 18;
    svg += "<rect class=\"d\" x=\"" + std::to_string(x) + "\" y=\"" +
           std::to_string(denseTop) + "\" width=\"14\" height=\"14\"/>\n";
    text(x + 20, denseTop + 11, "start", "held dense");
  }

  const RankHistory &history;
  const std::string &subtitle;
  int steps;
  int columns;
  int32_t largest = 0;
  int bottom = 0;
  std::vector<int> rowTops;
  std::string svg;
};

} // namespace

std::string ss_run::drawRanks(const RankHistory &history,
                              const std::string &subtitle) {
  return HeatMap(history, subtitle).draw();
}
