#!/usr/bin/env python3
"""Writes matrix_layouts.inc: where matrix instructions have their elements, as AMD's calculator says.

Usage: matrix_layouts.py path/to/matrix_calculator.py > matrix_layouts.inc
The calculator: https://github.com/ROCm/amd_matrix_instruction_calculator (needs Python's tabulate).

Every layout is linear in the bits of the indices. A row has, for A (i, k, block), B (k, j, block), D (i, j, block) and the
indices of sparse ones (i, k), where each bit of each index goes: a-f are bits 0-5 of the lane, 0-9 bits of the position in
the registers, counted in bits (5 is the next register). The script checks that all elements follow from the bits.
"""
import re
import subprocess
import sys


def elements(calculator, architecture, instruction, matrix, wave):
    command = [sys.executable, calculator, "--architecture", architecture, "--instruction", instruction, matrix, "-R", "--csv"]
    if wave:
        command += ["-w", str(wave)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    block, columns = 0, []
    for line in text.splitlines():
        if match := re.match(r"Block (\d+)", line):
            block = int(match[1])
        elif re.match(r"[ABDCK]\[", line):
            columns = [int(x) for x in line.split(",")[1:]]
        elif re.match(r"\d+,", line):
            row, *cells = line.split(",")
            for column, cell in zip(columns, cells):
                place = re.match(r"v(?:(\d+)|\[\d+:(\d+)\])\{(\d+)\}(?:\.\[\d+:(\d+)\])?", cell.split(" ")[0])
                register = int(place[1] or place[2])
                yield (int(row), column, block), (int(place[3]), 32 * register + int(place[4] or 0))


def layout(all_elements, steps):
    table = dict(all_elements)
    size = [max(index[axis] for index in table) + 1 for axis in range(3)]
    text, targets = [], []
    for axis in range(3):
        letters = ""
        bit = steps[axis]
        while bit < size[axis]:
            lane, position = table[tuple(bit if a == axis else 0 for a in range(3))]
            assert (lane == 0) != (position == 0) and (lane or position).bit_count() == 1, (bit, lane, position)
            letters += "abcdef"[lane.bit_length() - 1] if lane else str(position.bit_length() - 1)
            targets.append((axis, bit, lane, position))
            bit *= 2
        text.append(letters)
    for index, place in table.items():
        lane = sum(t[2] for t in targets if index[t[0]] & t[1])
        position = sum(t[3] for t in targets if index[t[0]] & t[1])
        assert (lane, position) == place, index
    return '"' + ",".join(text) + '"'


def main():
    calculator = sys.argv[1]
    print("// Made by matrix_layouts.py from AMD's matrix instruction calculator. Processor, wave size, instruction, then A (i,k,block),")
    print("// B (k,j,block), D (i,j,block) and the indices of sparse instructions (i,k): a-f bits of the lane, digits bits in registers.")
    for architecture, processor, waves in (("cdna2", "gfx90a", [0]), ("cdna3", "gfx942", [0]), ("rdna3", "gfx1100", [32, 64])):
        listing = subprocess.run([sys.executable, calculator, "--architecture", architecture, "--list-instructions"],
                                 capture_output=True, text=True, check=True).stdout
        for instruction in re.findall(r"v_\w+", listing):
            for wave in waves:
                sparse = "smfmac" in instruction
                parts = [layout(elements(calculator, architecture, instruction, "-A", wave), (1, 4 if sparse else 1, 1)),
                         layout(elements(calculator, architecture, instruction, "-B", wave), (1, 1, 1)),
                         layout(elements(calculator, architecture, instruction, "-D", wave), (1, 1, 1)),
                         layout(elements(calculator, architecture, instruction, "-k", wave), (1, 4, 1)) if sparse else '""']
                print('{"%s", %d, "%s", %s},' % (processor, wave or 64, instruction, ", ".join(parts)))


main()
