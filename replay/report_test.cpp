#include "replay/report.h"

#include <gtest/gtest.h>

#include "core/support/file.h"

namespace kerncap::replay {
namespace {

const std::filesystem::path template_file = KERNCAP_TEST_TEMPLATES "/report.html.mustache";

Verdict hostile() {
  Verdict v;
  const std::string evil = "k<script>alert('1')</script>&\"'{{#x}}\x01\xff";
  v.outcome = Outcome::differs;
  v.kernel = v.sentence = v.code_object = v.agent = evil;
  v.first = FirstDifference{0x1000, 0x1000, evil, 0, evil, 3, evil, evil, evil};
  Part part;
  part.what = part.type = evil;
  part.statistics.elements = 1000000;
  part.statistics.differing = part.statistics.outside = 1;
  v.parts.push_back(part);
  v.skipped.push_back({1, 2, evil});
  v.notes.push_back(evil);
  v.arguments.push_back({0, evil, evil, 0, 8, evil, 0x1000});
  BenchResult bench;
  bench.caches = bench.clock = bench.stopped_because = evil;
  bench.first.label = evil;
  bench.first.samples = {100, 101, 99, 100, 100, 5000};
  bench.first.median = median_interval(bench.first.samples);
  bench.second = bench.first;
  bench.comparison = compare_paired(bench.first.samples, bench.first.samples, 0.01);
  v.bench = bench;
  return v;
}

TEST(HtmlReport, EscapesEverythingThatComesFromElsewhere) {
  const std::string page = html_report(hostile(), template_file);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find('\x01'), std::string::npos);
  EXPECT_EQ(page.find('\xff'), std::string::npos);
  EXPECT_EQ(page.find("&\"'"), std::string::npos);
  EXPECT_NE(page.find("k&lt;script&gt;"), std::string::npos);
  EXPECT_NE(page.find("{{#x}}"), std::string::npos) << "texts are no templates";
}

TEST(HtmlReport, NeedsNothingFromElsewhere) {
  const std::string page = html_report(hostile(), template_file);
  for (const char* link : {"<link", "<img", "<script", "src=", "href=", "url(", "@import"})
    EXPECT_EQ(page.find(link), std::string::npos) << link;
}

TEST(HtmlReport, ShowsEverySampleAndMarksTheOutlier) {
  const std::string page = html_report(hostile(), template_file);
  std::size_t circles = 0;
  for (std::size_t at = 0; (at = page.find("<circle", at)) != std::string::npos; ++at) ++circles;
  EXPECT_EQ(circles, 12u);
  EXPECT_NE(page.find("class=\"first far\""), std::string::npos);
  EXPECT_NE(page.find("far above the others"), std::string::npos);
}

TEST(HtmlReport, OfAVerdictWithoutAnythingIsStillAPage) {
  const std::string page = html_report({}, template_file);
  EXPECT_NE(page.find("Nothing was compared."), std::string::npos);
  EXPECT_EQ(page.find("id=\"timing\""), std::string::npos);
}

TEST(HtmlReport, SaysThatItsTemplateIsMissing) {
  EXPECT_THROW(html_report({}, "/nowhere/report.html.mustache"), support::Error);
}

}  // namespace
}  // namespace kerncap::replay
