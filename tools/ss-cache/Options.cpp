//===- Options.cpp - The command line of ss-cache -------------------------===//

#include "Options.h"

#include "environment/Environment.h"

#include <string_view>
#include <utility>
#include <vector>

namespace ss_cache {
using sinkstate::Error;
using sinkstate::Result;
using sinkstate::Status;

const char *const kHelp =
    R"(ss-cache: look at and tidy the cache of compiled kernels

The runtime compiles each kernel once and keeps the result on disk. An entry is
found by the hash of everything it depends on: source, device headers, flags,
NVRTC, architecture, and the build of SinkState. Entries are never wrong when
something changes, only unused; those that are used least go first when the
cache is full. It is always safe to delete the cache.

Usage: ss-cache [--cache-dir DIR] COMMAND

Commands
  ls                  the entries, most recently used first
  show KEY-PREFIX     what one entry was compiled from and holds
  verify [--remove]   read every entry and compare it with its hashes;
                      --remove: remove the broken ones (the runtime does that
                      by itself when it meets one)
  prune [--max-size N] [--older-than DAYS]
                      remove the least recently used entries until the rest has
                      at most N bytes (512M, 2G; 0: all), and those not used for
                      DAYS days. Without options: to SS_CACHE_MAX_SIZE
  env                 the environment variables, as a Markdown table

Options
  --cache-dir DIR     the cache in DIR instead of SS_CACHE_DIR
  --help, --version

Examples
  ss-cache ls
  ss-cache show 3fa9
  ss-cache prune --older-than 30
  SS_DUMP_DIR=/tmp/kernels my-engine    # writes every kernel it uses
  SS_CACHE=off my-engine                # compiles every kernel again

Exit codes
  0  done
  1  verify found a broken entry, show found no or several entries, or prune
     could not remove an entry
  2  the command line or an environment variable is wrong, or the output cannot
     be written
)";

namespace {

struct CommandName {
  std::string_view word;
  Command command;
};
constexpr CommandName kCommands[] = {{"ls", Command::List},
                                     {"show", Command::Show},
                                     {"verify", Command::Verify},
                                     {"prune", Command::Prune},
                                     {"env", Command::Environment}};

/// The arguments, one after the other; `--name=value` is `--name value`.
class Arguments {
public:
  Arguments(int argc, char *const *argv) {
    for (int i = 1; i < argc; ++i)
      words.emplace_back(argv[i]);
  }

  bool next(std::string &name) {
    if (position == words.size())
      return false;
    name = words[position++];
    attached.reset();
    const size_t equals = name.find('=');
    if (name.starts_with("--") && equals != std::string::npos) {
      attached = name.substr(equals + 1);
      name.resize(equals);
    }
    return true;
  }
  Result<std::string> value(const std::string &name) {
    if (attached)
      return *std::exchange(attached, std::nullopt);
    if (position == words.size())
      return Error{name + " has no value: see ss-cache --help"};
    return words[position++];
  }
  /// Whether a value was given to an option that takes none.
  bool valueLeft() const { return attached.has_value(); }

private:
  std::vector<std::string> words;
  size_t position = 0;
  std::optional<std::string> attached;
};

class Parser {
public:
  Parser(int argc, char *const *argv) : arguments(argc, argv) {}

  Result<Options> parse() {
    std::string word;
    while (arguments.next(word)) {
      Status problem = word.starts_with('-') ? option(word) : positional(word);
      if (!problem && arguments.valueLeft())
        problem = Error{word + " takes no value: see ss-cache --help"};
      if (problem)
        return std::move(*problem);
    }
    if (ends != Command::Show) { // --help or --version, whatever else is given
      options.command = ends;
      return options;
    }
    if (!command)
      return Error{"no command, expected ls, show, verify, prune or env: see "
                   "ss-cache --help"};
    if (options.command == Command::Show && options.keyPrefix.empty())
      return Error{"show has no key, expected the beginning of one: see "
                   "ss-cache ls"};
    return options;
  }

private:
  Arguments arguments;
  Options options;
  const CommandName *command = nullptr;
  Command ends = Command::Show;

  Status positional(const std::string &word) {
    if (command && options.command == Command::Show &&
        options.keyPrefix.empty()) {
      options.keyPrefix = word;
      return std::nullopt;
    }
    if (command)
      return Error{"'" + word + "' after " + std::string(command->word) +
                   " is one word too many: see ss-cache --help"};
    for (const CommandName &name : kCommands)
      if (name.word == word)
        command = &name;
    if (!command)
      return Error{"'" + word +
                   "' is no command, expected ls, show, verify, prune or env: "
                   "see ss-cache --help"};
    options.command = command->command;
    return std::nullopt;
  }

  Status option(const std::string &word) {
    if (word == "--help" || word == "-h")
      return end(Command::Help);
    if (word == "--version")
      return end(Command::Version);
    if (word == "--cache-dir")
      return cacheFolder(word);
    if (word == "--remove" && is(Command::Verify)) {
      options.removeBroken = true;
      return std::nullopt;
    }
    if (word == "--max-size" && is(Command::Prune))
      return maxSize(word);
    if (word == "--older-than" && is(Command::Prune))
      return olderThan(word);
    const std::string place =
        command ? " after " + std::string(command->word) : "";
    return Error{"unknown option '" + word + "'" + place +
                 ": see ss-cache --help"};
  }

  bool is(Command wanted) const {
    return command && command->command == wanted;
  }
  Status end(Command with) {
    ends = with;
    return std::nullopt;
  }
  static Status twice(const std::string &word) {
    return Error{word + " is given twice, expected it once: see ss-cache "
                        "--help"};
  }
  Status cacheFolder(const std::string &word) {
    Result<std::string> value = arguments.value(word);
    if (!value)
      return value.takeError();
    if (value->empty())
      return Error{"--cache-dir is empty, expected a folder"};
    if (!options.cacheFolder.empty())
      return twice(word);
    options.cacheFolder = *value;
    return std::nullopt;
  }
  Status maxSize(const std::string &word) {
    Result<std::string> value = arguments.value(word);
    if (!value)
      return value.takeError();
    if (options.maxBytes)
      return twice(word);
    options.maxBytes = sinkstate::environment::parseByteSize(*value);
    if (!options.maxBytes)
      return Error{"--max-size is '" + *value +
                   "', expected a number of bytes such as 512M or 2G"};
    return std::nullopt;
  }
  Status olderThan(const std::string &word) {
    Result<std::string> value = arguments.value(word);
    if (!value)
      return value.takeError();
    if (options.olderThan)
      return twice(word);
    const bool digits =
        !value->empty() && value->size() <= 6 &&
        value->find_first_not_of("0123456789") == std::string::npos;
    if (!digits)
      return Error{"--older-than is '" + *value +
                   "', expected a whole number of days"};
    options.olderThan = std::chrono::hours(24) * std::stoi(*value);
    return std::nullopt;
  }
};

} // namespace

Result<Options> parseOptions(int argc, char *const *argv) {
  return Parser(argc, argv).parse();
}

} // namespace ss_cache
