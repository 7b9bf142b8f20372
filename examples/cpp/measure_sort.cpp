// measure_sort: which sorts faster, std::sort or std::stable_sort, and by how much?
//
//     c++ -std=c++17 -O2 -o measure_sort measure_sort.cpp $(pkg-config --cflags --libs ascar)
//     ./measure_sort [NUMBERS [LIMIT_S]]        defaults: 100000 numbers, 60 seconds a side
//
// A round sorts as many arrays of NUMBERS random numbers as it is told to, and feeds in the time of each as a unit
// reading: caches and clock rates that warm up are found as change points and left out, and correlated times count
// as the fewer independent ones that they are. Each side is measured until its mean is known to 10%; then the two
// are compared. Afterwards both run in turns, one array each, until the always-valid test tells them apart or says
// that they differ by less than 2%: however often it is asked, it errs at most once in a hundred times.
//
// Exit status: 0 both are known and compared, 1 the measuring failed, 2 bad arguments, 3 ended early.

#include <pilot.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Numbers = std::vector<double>;
using Sort = void (*)(Numbers &);

constexpr std::size_t turns_max = 2000;
constexpr double alpha = 0.01, margin = 0.02;

void check(int status)
{
    if (status != PILOT_OK)
        throw std::runtime_error(pilot_last_error());
}

struct Free {
    void operator()(pilot_session_t *session) const { pilot_free(session); }
};

class Side {
public:
    Side(std::string name, Sort sort, std::size_t numbers) : name_(std::move(name)), sort_(sort), numbers_(numbers) {}

    // Milliseconds that sorting one array takes. The array is new each time; making it is not timed.
    double milliseconds()
    {
        for (double &number : numbers_)
            number = uniform_(random_);
        const auto start = std::chrono::steady_clock::now();
        sort_(numbers_);
        const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
        return taken.count();
    }

    // Measures this side until its mean is known, and says whether it is.
    bool measure(double limit_s)
    {
        pilot_session_t *made = nullptr;
        check(pilot_create(PILOT_NORMAL, &made));
        const std::unique_ptr<pilot_session_t, Free> session(made);
        check(pilot_set_work_amount(made, 1, 1e6, 1));
        check(pilot_set_short_round(made, 0.2));
        check(pilot_set_session_limit(made, limit_s));
        check(pilot_add_indicator(made, "sort_ms", PILOT_ORDINARY, 1, nullptr));
        check(pilot_set_workload(made, &Side::round, this));
        check(pilot_run(made));
        pilot_summary_t summary;
        check(pilot_summary(made, &summary));
        check(pilot_finding(made, 0, &found_));
        const pilot_measurement_t &mean = found_.measurement;
        std::printf("%s %.5g ms (%.5g to %.5g), %zu readings in %zu rounds, %.0f independent; %s\n", name_.c_str(),
                    mean.mean, mean.ci_low, mean.ci_high, mean.n, summary.rounds_used, mean.independent_samples,
                    summary.why);
        if (std::isnan(mean.ci_low))
            std::printf("%s has no interval: %s\n", name_.c_str(), mean.reason);
        return summary.reached != 0;
    }

private:
    // No exception may pass the library, so none leaves here.
    static int round(void *user, double work_amount, pilot_round_t *round) noexcept
    {
        try {
            auto *side = static_cast<Side *>(user);
            side->times_.clear();
            for (double done = 0; done < work_amount; ++done)
                side->times_.push_back(side->milliseconds());
            return pilot_round_unit_readings(round, 0, side->times_.data(), side->times_.size());
        } catch (const std::exception &problem) {
            std::fprintf(stderr, "measure_sort: %s\n", problem.what());
            return -1;
        }
    }

    std::string name_;
    Sort sort_;
    Numbers numbers_;
    std::vector<double> times_;
    pilot_finding_t found_{};
    std::mt19937_64 random_{1};
    std::uniform_real_distribution<double> uniform_;
};

// In turns, until the test has decided.
void compare(Side &quick, Side &stable)
{
    std::vector<double> a, b;
    pilot_sequential_t found{};
    while (a.size() < turns_max && found.verdict == PILOT_UNDECIDED) {
        a.push_back(quick.milliseconds());
        b.push_back(stable.milliseconds());
        // Any times to look will do; fewer of them, as a single turn adds less and less.
        if (a.size() >= 10 && a.size() % (a.size() < 100 ? 1 : 10) == 0)
            check(pilot_sequential_compare(a.data(), a.size(), b.data(), b.size(), alpha, margin, &found));
    }
    const char *verdicts[] = {"undecided", "std::sort is faster", "std::stable_sort is faster",
                              "no difference above 2%"};
    std::printf("verdict %s after %zu turns: ratio %.4g (%.4g to %.4g)\n", verdicts[found.verdict], a.size(),
                found.ratio, found.ratio_ci_low, found.ratio_ci_high);
}

} // namespace

int main(int argc, char **argv)
try {
    const double numbers = argc > 1 ? std::strtod(argv[1], nullptr) : 1e5;
    const double limit_s = argc > 2 ? std::strtod(argv[2], nullptr) : 60;
    if (argc > 3 || !(numbers >= 1 && numbers <= 1e9) || !(limit_s > 0)) {
        std::fprintf(stderr, "usage: measure_sort [NUMBERS [LIMIT_S]]\n");
        return 2;
    }
    const auto size = static_cast<std::size_t>(numbers);
    Side quick("std::sort", [](Numbers &all) { std::sort(all.begin(), all.end()); }, size);
    Side stable("std::stable_sort", [](Numbers &all) { std::stable_sort(all.begin(), all.end()); }, size);
    const bool quick_known = quick.measure(limit_s), stable_known = stable.measure(limit_s);
    compare(quick, stable);
    return quick_known && stable_known ? 0 : 3;
} catch (const std::exception &problem) {
    std::fprintf(stderr, "measure_sort: %s\n", problem.what());
    return 1;
}
