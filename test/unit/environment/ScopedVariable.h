//===- ScopedVariable.h - An environment variable for one test --*- C++ -*-===//
#ifndef SINKSTATE_TEST_UNIT_ENVIRONMENT_SCOPEDVARIABLE_H
#define SINKSTATE_TEST_UNIT_ENVIRONMENT_SCOPEDVARIABLE_H

#include <cstdlib>
#include <optional>
#include <string>

/// Sets a variable (nullptr: unsets it) and puts back what was there.
class ScopedVariable {
public:
  ScopedVariable(const char *name, const char *value) : name(name) {
    if (const char *old = std::getenv(name))
      before = old;
    set(value);
  }
  ~ScopedVariable() { set(before ? before->c_str() : nullptr); }
  ScopedVariable(const ScopedVariable &) = delete;
  ScopedVariable &operator=(const ScopedVariable &) = delete;

private:
  const char *name;
  std::optional<std::string> before;

  void set(const char *value) {
    if (value)
      ::setenv(name, value, 1);
    else
      ::unsetenv(name);
  }
};

#endif
