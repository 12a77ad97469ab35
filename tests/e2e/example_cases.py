"""The kernels that the end-to-end tests take out of the applications in examples/, and the edits they make to them."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Edit:
    """Replaces one text, which must occur exactly once, in a source file of the emitted project."""

    file: str
    old: str
    new: str


@dataclasses.dataclass(frozen=True)
class Case:
    name: str  # of the test
    example: str  # folder in examples/, and the name of its program
    kernel: str  # pattern for -k
    definition: str  # the file that defines the kernel
    symbol: str  # a part of the mangled name
    harmless: Edit  # keeps every bit of the result
    breaking: Edit  # changes the result
    difference: str  # regular expression: what the verdict says differs
    arguments: tuple = ()  # of the application
    dispatch: int = 0
    make: bool = False  # built with the example's Makefile
    alone: bool = False  # the moved project also builds its own replayer, as where Kerncap isn't installed


CASES = [
    Case(
        name="lennard-jones.compute_forces", example="lennard-jones", kernel="*compute_forces<float>*",
        definition="forces.hip", symbol="compute_forcesIfE",
        arguments=("--cells", "5"), dispatch=1, alone=True,
        harmless=Edit("forces.hip", "if (r_squared < view.cutoff_squared)", "if (!(r_squared >= view.cutoff_squared))"),
        breaking=Edit("forces.hip", "fx += pair.force_over_r * dx", "fx -= pair.force_over_r * dx"),
        # The forces are reached through a table of pointers inside a structure.
        difference=r"argument \d+ 'view'|memory at 0x"),
    Case(
        name="lennard-jones.kick_drift", example="lennard-jones", kernel="re:kick_drift<double>",
        definition="integrate.hip", symbol="kick_driftIdE",
        arguments=("--cells", "4", "--precision", "double"),
        harmless=Edit("integrate.hip", "position[particle] = wrap(position[particle] + dt * velocity[particle], box);",
                      "const Real v = velocity[particle];\n  position[particle] = wrap(dt * v + position[particle], box);"),
        breaking=Edit("integrate.hip", "velocity[particle] += Real(0.5) * dt", "velocity[particle] += Real(0.25) * dt"),
        difference=r"argument \d+ 'state'|memory at 0x"),
    Case(
        name="tiled-matmul.gemm_tiled", example="tiled-matmul", kernel="*gemm_tiled<float, float, 32, 4, matmul::Identity>*",
        definition="gemm_kernel.h", symbol="gemm_tiledIff",
        arguments=("--type", "float"),
        harmless=Edit("gemm_kernel.h", "#pragma unroll 4", "#pragma unroll 2"),
        breaking=Edit("gemm_kernel.h", "sums[r] += a_tile", "sums[r] -= a_tile"),
        difference=r"argument 3 'c'"),
    Case(
        name="histogram.histogram_shared", example="histogram", kernel="histogram_shared",
        definition="count_shared.cpp", symbol="histogram_shared",
        harmless=Edit("count_shared.cpp", "if (count != 0) atomicAdd(&bins[bin], count);", "atomicAdd(&bins[bin], count);"),
        breaking=Edit("count_shared.cpp", "atomicAdd(&mine[four.w], 1u);", "atomicAdd(&mine[four.w], 2u);"),
        difference=r"argument 2 'bins'"),
    Case(
        name="stencil.advance_wave", example="stencil", kernel="advance_wave",
        definition="wave_step.hip", symbol="advance_wave",
        arguments=("--steps", "6"), dispatch=4,
        harmless=Edit("wave_step.hip", "2.0f * center - next[index]", "center + center - next[index]"),
        breaking=Edit("wave_step.hip", "+ velocity_squared[index] * laplace", "- velocity_squared[index] * laplace"),
        difference=r"argument 1 'next'"),
    Case(
        name="stencil.inject_source", example="stencil", kernel="inject_source",
        definition="source.hip", symbol="inject_source", dispatch=2,
        harmless=Edit("source.hip", "++injection_count;", "injection_count += 1;"),
        breaking=Edit("source.hip", "++injection_count;", "injection_count += 2;"),
        difference=r"injection_count"),
    Case(
        name="reduction.dot_single_pass", example="reduction", kernel="dot_single_pass",
        definition="dot.cpp", symbol="dot_single_pass",
        harmless=Edit("dot.cpp", "atomicAdd(finished, 1u) == gridDim.x - 1", "atomicAdd(finished, 1u) + 1 == gridDim.x"),
        breaking=Edit("dot.cpp", "mine += partials[i];", "mine += 2 * partials[i];"),
        difference=r"argument 5 'result'"),
    Case(
        name="reduction.reduce_blocks", example="reduction", kernel="*reduce_blocks<reduction::Largest,*",
        definition="reduce_kernel.h", symbol="reduce_blocks",
        arguments=("--operation", "largest"), make=True,
        harmless=Edit("block_reduce.h", "distance > 0; distance /= 2", "distance > 0; distance >>= 1"),
        breaking=Edit("operations.h", "a.value > b.value ? a : b", "a.value > b.value ? b : a"),
        difference=r"argument 2 'partials'"),
    Case(
        name="spmv.multiply_vector", example="spmv", kernel="multiply_vector",
        definition="csr_vector.hip", symbol="GLOBAL__N_1",
        harmless=Edit("csr_vector.hip", "distance > 0; distance /= 2", "distance > 0; distance >>= 1"),
        breaking=Edit("csr_vector.hip", "sum += matrix.values[i]", "sum -= matrix.values[i]"),
        difference=r"argument 2 'y'"),
    # The same symbol is in csr_scalar.hip: only the code object tells which of the two ran.
    Case(
        name="spmv.apply_damping", example="spmv", kernel="apply_damping",
        definition="csr_vector.hip", symbol="L13apply_damping",
        arguments=("--method", "vector"), dispatch=1,
        harmless=Edit("csr_vector.hip", "damping * y[row] + teleport", "teleport + y[row] * damping"),
        breaking=Edit("csr_vector.hip", "damping * y[row] + teleport", "damping * y[row] - teleport"),
        difference=r"argument 0 'y'"),
]
