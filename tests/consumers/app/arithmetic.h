#pragma once

// value * factor^times
int expected(int value, int factor, int times);
