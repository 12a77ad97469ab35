#include "arithmetic.h"

int expected(int value, int factor, int times) {
  for (int i = 0; i < times; ++i) value *= factor;
  return value;
}
