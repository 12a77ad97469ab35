from setuptools import Extension, setup

setup(name="recorded", version="1.0", ext_modules=[Extension("recorded", ["extension.c"])])
