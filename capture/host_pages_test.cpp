#include "capture/host_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kerncap::capture {
namespace {

TEST(HostPages, FindsTheChunksThatChangedAndRemembersTheirNewBytes) {
  std::vector<std::byte> bytes(300000);
  HostPages pages;
  pages.remember(3, 0, std::span(bytes).first(131072));
  pages.remember(3, 131072, std::span(bytes).subspan(131072));
  EXPECT_THAT(pages.changed(3, 0, bytes), ::testing::IsEmpty());
  bytes[5] = bytes[4097] = std::byte{1};  // two pages of the first chunk
  bytes[299999] = std::byte{2};           // the last, partial page
  EXPECT_THAT(pages.changed(3, 0, bytes), ::testing::ElementsAre(0, 262144));
  EXPECT_THAT(pages.changed(3, 0, bytes), ::testing::IsEmpty());
  bytes[131072] = std::byte{3};
  EXPECT_THAT(pages.changed(3, 131072, std::span(bytes).subspan(131072)), ::testing::ElementsAre(131072));
}

}  // namespace
}  // namespace kerncap::capture
