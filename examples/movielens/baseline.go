package main

import "math"

// MeanError returns the root of the mean squared error, on held-out ratings, of predicting the mean
// of the training ratings; and that mean.
func (s *dataset) MeanError() (rmse, mean float64) {
	for _, v := range s.Learnt.Stars {
		mean += float64(v)
	}
	mean /= float64(len(s.Learnt.Stars))
	return s.Held.rmse(func(int) float64 { return mean }), mean
}

// BiasError is MeanError for the mean plus the biases of user and film. A bias is estimated as if
// there were 5 more ratings without bias, so that few ratings do not yield a large bias.
func (s *dataset) BiasError() float64 {
	const more, sweeps = 5, 10
	_, mean := s.MeanError()
	users, films := make([]float64, s.Users), make([]float64, s.Films)
	l := &s.Learnt
	for range sweeps {
		estimate(films, l.Films, more, func(i int) float64 { return float64(l.Stars[i]) - mean - users[l.Users[i]] })
		estimate(users, l.Users, more, func(i int) float64 { return float64(l.Stars[i]) - mean - films[l.Films[i]] })
	}
	return s.Held.rmse(func(i int) float64 { return mean + users[s.Held.Users[i]] + films[s.Held.Films[i]] })
}

// estimate sets each bias to the mean of the rest of its ratings.
func estimate(bias []float64, of []int32, more float64, rest func(i int) float64) {
	n := make([]float64, len(bias))
	clear(bias)
	for i, at := range of {
		bias[at] += rest(i)
		n[at]++
	}
	for at := range bias {
		bias[at] /= n[at] + more
	}
}

func (l *ratingList) rmse(predict func(i int) float64) float64 {
	var sum float64
	for i, v := range l.Stars {
		sum += math.Pow(predict(i)-float64(v), 2)
	}
	return math.Sqrt(sum / float64(len(l.Stars)))
}
