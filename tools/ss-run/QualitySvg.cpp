//===- QualitySvg.cpp - Bytes against divergence as a picture -------------===//

#include "QualityTable.h"
#include "SvgText.h"

#include <algorithm>
#include <cmath>

using namespace ss_run;

namespace {

constexpr int left = 90, top = 64, plotWidth = 560, plotHeight = 360;
constexpr int labelWidth = 230;
/// A divergence of nothing has no logarithm: it is drawn at the bottom.
constexpr double least = 1e-7;

/// A logarithmic axis from below `low` to above `high`.
class Axis {
public:
  Axis(double low, double high, double begin, double end)
      : begin(begin), end(end) {
    first = std::log10(low) - 0.08;
    last = std::log10(high) + 0.08;
    // One value alone still needs a scale.
    if (last - first < 0.5) {
      const double middle = (first + last) / 2;
      first = middle - 0.25;
      last = middle + 0.25;
    }
  }
  double place(double value) const {
    return begin + (end - begin) * (std::log10(value) - first) / (last - first);
  }
  /// 1, 2 and 5 times powers of ten in its range.
  std::vector<double> ticks() const {
    std::vector<double> all;
    for (int power = int(std::floor(first)); power <= int(last) + 1; ++power)
      for (double digit : {1.0, 2.0, 5.0})
        if (const double tick = digit * std::pow(10, power);
            std::log10(tick) >= first && std::log10(tick) <= last)
          all.push_back(tick);
    return all;
  }

private:
  double begin, end, first = 0, last = 0;
};

class Plot {
public:
  Plot(const QualityTable &table, const std::string &subtitle)
      : table(table), subtitle(subtitle), x(bytesAxis()), y(divergenceAxis()) {}

  std::string draw() {
    drawHead();
    drawAxes();
    drawPoints();
    svg += "</svg>\n";
    return std::move(svg);
  }

private:
  double share(const VariantQuality &variant) const {
    return 100 * variant.liveMean / double(table.denseBytes);
  }
  static double height(double divergence) {
    return std::max(divergence, least);
  }
  /// Smallest and largest divergence of a quarter of the run.
  static std::pair<double, double> quarters(const VariantQuality &variant) {
    const auto [low, high] = std::minmax_element(variant.quarters.begin(),
                                                 variant.quarters.end());
    return {height(*low), height(*high)};
  }

  template <typename Value> std::pair<double, double> range(Value value) const {
    double low = value(table.variants.front()), high = low;
    for (const VariantQuality &variant : table.variants) {
      low = std::min(low, value(variant));
      high = std::max(high, value(variant));
    }
    return {low, high};
  }
  Axis bytesAxis() const {
    const auto [low, high] =
        range([&](const VariantQuality &v) { return share(v); });
    return {low, high, left, left + plotWidth};
  }
  Axis divergenceAxis() const {
    const auto [low, unused] = range(
        [](const VariantQuality &v) {
          return std::min(quarters(v).first, height(v.divergence));
        });
    const auto [unusedToo, high] = range(
        [](const VariantQuality &v) {
          return std::max(quarters(v).second, height(v.divergence));
        });
    return {low, high, top + plotHeight, top};
  }

  void text(double atX, double atY, const char *anchor,
            const std::string &content, const char *style = "") {
    svg += "<text x=\"" + svgNumber(atX) + "\" y=\"" + svgNumber(atY) +
           "\" text-anchor=\"" + anchor + "\"" + style + ">" +
           escapeXml(content) + "</text>\n";
  }

  void drawHead() {
    const std::string width = std::to_string(left + plotWidth + labelWidth);
    const std::string height = std::to_string(top + plotHeight + 60);
    svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width +
          "\" height=\"" + height + "\" viewBox=\"0 0 " + width + " " + height +
          "\" role=\"img\" font-family=\"sans-serif\" font-size=\"11\">\n"
          "<title>Bytes of states against divergence</title>\n"
          "<style>\n.page{fill:#ffffff}text{fill:#1f2328}.axis{stroke:#59636e;"
          "fill:none}.grid{stroke:#d1d9e0}.point{fill:#3b528b}"
          ".quarters{stroke:#3b528b}\n"
          "@media (prefers-color-scheme: dark){.page{fill:#0d1117}"
          "text{fill:#e6edf3}.axis{stroke:#9198a1}.grid{stroke:#3d444d}"
          ".point{fill:#5ec962}.quarters{stroke:#5ec962}}\n</style>\n<rect class=\"page\" width=\"" +
          width + "\" height=\"" + height + "\"/>\n";
    text(left, 24, "start", "Bytes of states against divergence",
         " font-size=\"15\" font-weight=\"bold\"");
    text(left, 44, "start", subtitle);
  }

  void line(const char *style, double fromX, double fromY, double toX,
            double toY) {
    svg += std::string("<path class=\"") + style + "\" d=\"M" +
           svgNumber(fromX) + " " + svgNumber(fromY) + "L" + svgNumber(toX) +
           " " + svgNumber(toY) + "\"/>\n";
  }

  void drawAxes() {
    const double bottom = top + plotHeight, right = left + plotWidth;
    for (double tick : x.ticks()) {
      line("grid", x.place(tick), top, x.place(tick), bottom);
      text(x.place(tick), bottom + 16, "middle", svgNumber(tick) + " %");
    }
    for (double tick : y.ticks()) {
      line("grid", left, y.place(tick), right, y.place(tick));
      text(left - 8, y.place(tick) + 4, "end", svgNumber(tick));
    }
    line("axis", left, bottom, right, bottom);
    line("axis", left, top, left, bottom);
    text(left + plotWidth / 2.0, bottom + 40, "middle",
         "live bytes, mean, of dense states in f32");
    text(left, top - 8, "start", "KL to dense, nats: of the run, from its best quarter to its worst");
  }

  void drawPoints() {
    for (const VariantQuality &variant : table.variants) {
      const double atX = x.place(share(variant));
      const double atY = y.place(height(variant.divergence));
      const auto [low, high] = quarters(variant);
      line("quarters", atX, y.place(low), atX, y.place(high));
      svg += "<circle class=\"point\" cx=\"" + svgNumber(atX) + "\" cy=\"" +
             svgNumber(atY) + "\" r=\"4\"/>\n";
      text(atX + 8, atY + 4, "start", variant.name);
    }
  }

  const QualityTable &table;
  const std::string &subtitle;
  Axis x, y;
  std::string svg;
};

} // namespace

std::string ss_run::drawQuality(const QualityTable &table,
                                const std::string &subtitle) {
  if (table.variants.empty())
    return {};
  return Plot(table, subtitle).draw();
}
