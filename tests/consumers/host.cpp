void run(float*);
int main(int count, char**) {
  if (count > 1) run(nullptr);
}
