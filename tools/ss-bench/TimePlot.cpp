//===- TimePlot.cpp - Time against batch size as a picture ----------------===//

#include "TimePlot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

using namespace ss_bench;

namespace {

constexpr int kLeft = 72, kTop = 64, kWidth = 560, kHeight = 360;
constexpr int kLegendWidth = 240, kBottomSpace = 56, kLegendLine = 20;
/// Apart for the eye, in print and for the colour-blind.
const char *const kColors[] = {"#0072b2", "#56b4e9", "#009e73", "#d55e00",
                               "#cc79a7", "#e69f00", "#7f7f7f"};

struct Point {
  double batch, time;
};
struct Line {
  std::string name;
  std::vector<Point> points;
  bool ours;
};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", value);
  return text;
}

std::string escape(const std::string &text) {
  std::string escaped;
  for (char c : text) {
    if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '&')
      escaped += "&amp;";
    else // Paths may hold bytes that are not UTF-8.
      escaped += static_cast<unsigned char>(c) - 0x20u < 0x5fu ? c : '?';
  }
  return escaped;
}

std::vector<Line> linesOf(const BenchResult &result,
                          const Baselines &baselines) {
  std::vector<Line> lines;
  auto add = [&](const std::string &name, double batch, double time, bool ours) {
    if (!(time > 0))
      return;
    auto line = std::find_if(lines.begin(), lines.end(),
                             [&](const Line &l) { return l.name == name; });
    if (line == lines.end())
      line = lines.insert(lines.end(), {name, {}, ours});
    line->points.push_back({batch, time});
  };
  for (const BatchResult &batch : result.batches)
    for (const Measured &m : batch.ours) {
      if (!m.staggered && batch.ours.size() > 1)
        continue;
      add("decode and compaction, " + m.data, m.batch, m.step, true);
      add("decode alone, " + m.data, m.batch, m.decodeOnly, true);
    }
  for (DenseForm form : kDenseForms)
    for (const BatchResult &batch : result.batches)
      if (const auto &dense = batch.dense[form])
        add(result.nameOf(form), batch.batch, dense->step, false);
  for (const Baseline *baseline : baselines.of(result.shape, 0))
    add(baseline->kernel + " " + baseline->state, baseline->batch,
        baseline->microseconds, false);
  return lines;
}

/// Draws into one string; knows where a batch and a time lie.
class Plot {
public:
  Plot(const BenchResult &result, std::vector<Line> lines)
      : result(result), lines(std::move(lines)) {
    for (const Line &line : this->lines)
      for (const Point &point : line.points) {
        x.take(point.batch);
        y.take(point.time);
      }
    x.widen();
    y.widen();
  }

  std::string draw() {
    drawHead();
    drawAxes();
    for (size_t i = 0; i < lines.size(); ++i)
      drawLine(i);
    svg += "</svg>\n";
    return std::move(svg);
  }

private:
  struct Range {
    double least = HUGE_VAL, most = 0;
    void take(double value) {
      least = std::min(least, value);
      most = std::max(most, value);
    }
    void widen() {
      if (least > most)
        least = most = 1;
      least /= 1.3, most *= 1.3;
    }
    double place(double value) const {
      return std::log(value / least) / std::log(most / least);
    }
  };

  double across(double batch) const { return kLeft + kWidth * x.place(batch); }
  double down(double time) const { return kTop + kHeight * (1 - y.place(time)); }

  void text(double left, double top, const char *anchor,
            const std::string &content, const char *style = "") {
    svg += "<text x=\"" + number(left) + "\" y=\"" + number(top) +
           "\" text-anchor=\"" + anchor + "\"" + style + ">" + escape(content) +
           "</text>\n";
  }

  void drawHead() {
    const int height = std::max(kTop + kHeight + kBottomSpace,
                                kTop + kLegendLine * int(lines.size() + 1));
    const std::string size = std::to_string(kLeft + kWidth + kLegendWidth) +
                             "\" height=\"" + std::to_string(height);
    svg += "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + size +
           "\" viewBox=\"0 0 " + std::to_string(kLeft + kWidth + kLegendWidth) +
           " " + std::to_string(height) +
           "\" role=\"img\" font-family=\"sans-serif\" font-size=\"11\">\n"
           "<title>Time of a decode step against batch size</title>\n<style>\n"
           ".page{fill:#ffffff}text{fill:#1f2328}.axis{stroke:#59636e;"
           "fill:none}.grid{stroke:#d1d9e0;fill:none}\n"
           "@media (prefers-color-scheme: dark){.page{fill:#0d1117}"
           "text{fill:#e6edf3}.axis{stroke:#9198a1}.grid{stroke:#3d444d}}\n"
           "</style>\n<rect class=\"page\" width=\"" +
           size + "\"/>\n";
    text(kLeft, 24, "start", "Microseconds per layer and step against batch size",
         " font-size=\"15\" font-weight=\"bold\"");
    text(kLeft, 44, "start",
         result.model + ", ranks " + result.profile + ", " + result.device);
  }

  void drawAxes() {
    std::string grid, labels;
    for (double decade = 1e-3; decade < 1e7; decade *= 10)
      for (double step : {1.0, 2.0, 5.0}) {
        const double time = decade * step;
        if (time < y.least || time > y.most)
          continue;
        grid += "M" + number(kLeft) + " " + number(down(time)) + "h" +
                std::to_string(kWidth);
        text(kLeft - 8, down(time) + 4, "end", number(time));
      }
    std::map<double, bool> batches;
    for (const Line &line : lines)
      for (const Point &point : line.points)
        batches[point.batch] = true;
    for (const auto &[batch, found] : batches) {
      grid += "M" + number(across(batch)) + " " + std::to_string(kTop) + "v" +
              std::to_string(kHeight);
      text(across(batch), kTop + kHeight + 18, "middle", number(batch));
    }
    svg += "<path class=\"grid\" d=\"" + grid + "\"/>\n<path class=\"axis\" d=\"M" +
           std::to_string(kLeft) + " " + std::to_string(kTop) + "v" +
           std::to_string(kHeight) + "h" + std::to_string(kWidth) + "\"/>\n";
    text(kLeft + kWidth / 2.0, kTop + kHeight + 40, "middle",
         "requests in a batch");
  }

  void drawLine(size_t i) {
    const Line &line = lines[i];
    const std::string color = kColors[i % std::size(kColors)];
    const std::string stroke = "stroke=\"" + color + "\" stroke-width=\"2\"" +
                               (line.ours ? "" : " stroke-dasharray=\"6 4\"");
    std::string path;
    for (const Point &point : line.points) {
      const std::string place =
          number(across(point.batch)) + " " + number(down(point.time));
      path += (path.empty() ? "M" : "L") + place;
      svg += "<circle cx=\"" + number(across(point.batch)) + "\" cy=\"" +
             number(down(point.time)) + "\" r=\"3\" fill=\"" + color + "\"/>\n";
    }
    svg += "<path fill=\"none\" " + stroke + " d=\"" + path + "\"/>\n";
    const double left = kLeft + kWidth + 20, top = kTop + kLegendLine * double(i);
    svg += "<path " + stroke + " d=\"M" + number(left) + " " + number(top) +
           "h24\"/>\n";
    text(left + 32, top + 4, "start", line.name);
  }

  const BenchResult &result;
  std::vector<Line> lines;
  Range x, y;
  std::string svg;
};

} // namespace

std::string ss_bench::drawTimes(const BenchResult &result,
                                const Baselines &baselines) {
  return Plot(result, linesOf(result, baselines)).draw();
}
