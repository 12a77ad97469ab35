#include "emit/pack.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/hash.h"
#include "core/support/json.h"

namespace kerncap::emit {
namespace {

namespace fs = std::filesystem;
using support::ExitCode;
using support::fail;
using support::Json;

constexpr const char* schema = "kerncap.pack/1";
constexpr const char* contents_name = "kerncap-pack.json";
constexpr std::uint64_t largest_contents = std::uint64_t{64} << 20;
constexpr std::size_t block_size = std::size_t{1} << 20;

struct Member {
  std::string path;  // relative to the project
  std::uint64_t size = 0;
  std::string digest;
};

struct WriteArchive {
  void operator()(archive* a) const { archive_write_free(a); }
};
struct ReadArchive {
  void operator()(archive* a) const { archive_read_free(a); }
};
struct FreeEntry {
  void operator()(archive_entry* e) const { archive_entry_free(e); }
};

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

std::vector<Member> members_of(const fs::path& project) {
  std::vector<Member> members;
  fs::recursive_directory_iterator entries(project, fs::directory_options::follow_directory_symlink), end;
  for (; entries != end; ++entries) {
    // Through a linked snapshot the canonical path would leave the project: keep the name as it is reached.
    const std::string name = entries->path().lexically_relative(project).string();
    if (entries->is_directory()) {
      // A build folder is known by CMake's cache in it.
      if (fs::exists(entries->path() / "CMakeCache.txt")) entries.disable_recursion_pending();
      continue;
    }
    if (!entries->is_regular_file()) continue;
    members.push_back({name, entries->file_size(), support::sha256_hex_of_file(entries->path())});
  }
  std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.path < b.path; });
  return members;
}

class PackWriter {
 public:
  explicit PackWriter(const fs::path& path) : path_(path), archive_(archive_write_new()) {
    check(archive_write_set_format_pax_restricted(archive_.get()));
    check(archive_write_add_filter_zstd(archive_.get()));
    check(archive_write_open_filename(archive_.get(), path.c_str()));
  }

  void add_text(const std::string& name, const std::string& text) {
    begin(name, text.size());
    write(text.data(), text.size());
  }

  void add_file(const std::string& name, const fs::path& path, std::uint64_t size) {
    begin(name, size);
    const support::MappedFile file(path);
    const auto bytes = file.bytes();
    if (bytes.size() != size) fail(ExitCode::environment, "'{}' changed while it was packed", path.string());
    for (std::size_t at = 0; at < bytes.size(); at += block_size)
      write(bytes.data() + at, std::min(block_size, bytes.size() - at));
  }

  void close() { check(archive_write_close(archive_.get())); }

 private:
  void begin(const std::string& name, std::uint64_t size) {
    const std::unique_ptr<archive_entry, FreeEntry> entry(archive_entry_new());
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(size));
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0600);
    check(archive_write_header(archive_.get(), entry.get()));
  }

  void write(const void* data, std::size_t size) {
    if (archive_write_data(archive_.get(), data, size) != static_cast<la_ssize_t>(size)) check(ARCHIVE_FATAL);
  }

  void check(int status) {
    if (status >= ARCHIVE_WARN) return;
    const char* text = archive_error_string(archive_.get());
    fail(ExitCode::environment, "cannot write '{}': {}", path_.string(), text != nullptr ? text : "unknown error");
  }

  fs::path path_;
  std::unique_ptr<archive, WriteArchive> archive_;
};

class PackReader {
 public:
  explicit PackReader(const fs::path& path) : path_(path), archive_(archive_read_new()) {
    check(archive_read_support_format_tar(archive_.get()));
    check(archive_read_support_filter_zstd(archive_.get()));
    check(archive_read_open_filename(archive_.get(), path.c_str(), block_size));
  }

  // The next member's name and size; false at the end.
  bool next(std::string& name, std::uint64_t& size) {
    archive_entry* entry = nullptr;
    const int status = archive_read_next_header(archive_.get(), &entry);
    if (status == ARCHIVE_EOF) return false;
    check(status);
    const char* path = archive_entry_pathname(entry);
    name = path != nullptr ? path : "";
    size = static_cast<std::uint64_t>(std::max<la_int64_t>(archive_entry_size(entry), 0));
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr)
      fail(ExitCode::bad_input, "'{}' holds '{}', which is no plain file", path_.string(), name);
    return true;
  }

  std::size_t read(std::byte* buffer, std::size_t size) {
    const la_ssize_t count = archive_read_data(archive_.get(), buffer, size);
    if (count < 0) check(static_cast<int>(count));
    return static_cast<std::size_t>(std::max<la_ssize_t>(count, 0));
  }

 private:
  void check(int status) {
    if (status >= ARCHIVE_WARN) return;
    const char* text = archive_error_string(archive_.get());
    fail(ExitCode::bad_input, "'{}' is no packed project, or damaged: {}", path_.string(),
         text != nullptr ? text : "unknown error");
  }

  fs::path path_;
  std::unique_ptr<archive, ReadArchive> archive_;
};

std::string read_contents(PackReader& reader, const fs::path& file) {
  std::string name;
  std::uint64_t size = 0;
  if (!reader.next(name, size) || name != contents_name || size > largest_contents)
    fail(ExitCode::bad_input, "'{}' is no packed project: its list of contents is missing", file.string());
  std::string text(size, '\0');
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t count = reader.read(reinterpret_cast<std::byte*>(text.data()) + at, text.size() - at);
    if (count == 0) fail(ExitCode::bad_input, "'{}' is damaged: its list of contents is cut", file.string());
    at += count;
  }
  return text;
}

std::map<std::string, Member> parse_contents(const std::string& text, const fs::path& file) {
  const std::string what = "'" + file.string() + "'";
  const Json document = support::parse_json(text, what);
  if (!document.is_object() || support::string_member(document, "schema", what) != schema)
    fail(ExitCode::bad_input, "{} was packed by another version of Kerncap", what);
  std::map<std::string, Member> members;
  for (const Json& entry : support::array_member(document, "files", what)) {
    Member member{support::string_member(entry, "path", what), support::unsigned_member(entry, "size", what),
                  support::string_member(entry, "sha256", what)};
    if (!support::is_safe_relative_path(member.path))
      fail(ExitCode::bad_input, "{} wants to write to '{}', outside of its folder", what, member.path);
    const std::string path = member.path;
    members[path] = std::move(member);
  }
  return members;
}

void unpack_member(PackReader& reader, const Member& member, const fs::path& target, const fs::path& file) {
  fs::create_directories(target.parent_path());
  const Descriptor out(open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (out.get() < 0) fail(ExitCode::environment, "cannot write '{}'", target.string());
  std::vector<std::byte> buffer(block_size);
  std::uint64_t written = 0;
  while (const std::size_t count = reader.read(buffer.data(), buffer.size())) {
    written += count;
    if (written > member.size) break;
    support::write_all(out.get(), std::span(buffer.data(), count), target.string());
  }
  if (written != member.size || support::sha256_hex_of_file(target) != member.digest)
    fail(ExitCode::bad_input, "'{}' is damaged: '{}' is not what was packed", file.string(), member.path);
}

}  // namespace

PackReport pack_project(const fs::path& project, const fs::path& file, bool replace) {
  const fs::path folder = fs::path(project).lexically_normal();
  if (!fs::is_regular_file(folder / "kernel.json"))
    fail(ExitCode::usage, "'{}' is no project of Kerncap (it has no kernel.json)", project.string());
  if (!replace && fs::exists(file))
    fail(ExitCode::usage, "'{}' exists; choose another name or give --force", file.string());
  const auto members = members_of(folder);
  Json list = Json::array();
  PackReport report;
  for (const auto& member : members) {
    list.push_back({{"path", member.path}, {"size", member.size}, {"sha256", member.digest}});
    report.bytes += member.size;
  }
  report.files = members.size();
  const fs::path temporary = file.string() + ".tmp";
  try {
    PackWriter writer(temporary);
    writer.add_text(contents_name, support::dump_json({{"schema", schema}, {"files", list}}));
    for (const auto& member : members) writer.add_file(member.path, folder / member.path, member.size);
    writer.close();
    report.packed_bytes = fs::file_size(temporary);
    fs::rename(temporary, file);
  } catch (...) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
  return report;
}

PackReport unpack_project(const fs::path& file, const fs::path& folder, bool replace) {
  if (!fs::is_regular_file(file)) fail(ExitCode::bad_input, "'{}' is not there", file.string());
  if (!replace && fs::exists(fs::symlink_status(folder)))
    fail(ExitCode::usage, "'{}' exists; choose another folder or give --force", folder.string());
  PackReader reader(file);
  auto members = parse_contents(read_contents(reader, file), file);
  support::AtomicFolder output(folder, replace);
  PackReport report;
  report.packed_bytes = fs::file_size(file);
  std::string name;
  std::uint64_t size = 0;
  while (reader.next(name, size)) {
    const auto member = members.find(name);
    if (member == members.end())
      fail(ExitCode::bad_input, "'{}' holds '{}', which its list of contents does not name", file.string(), name);
    unpack_member(reader, member->second, output.path() / name, file);
    ++report.files;
    report.bytes += member->second.size;
    members.erase(member);
  }
  if (!members.empty())
    fail(ExitCode::bad_input, "'{}' is damaged: '{}' is missing", file.string(), members.begin()->first);
  output.commit();
  return report;
}

}  // namespace kerncap::emit
